// Whether an address is one of the public internet. A server that sends to addresses others give it must not be sent to its
// own network: loopback, private and link-local ranges, the metadata services of clouds, and any of these in IPv6's clothes.
import { BlockList, isIPv4, isIPv6 } from "node:net";

/** IANA's special-purpose registry (RFC 6890 and its updates), multicast, and what is reserved. */
const SPECIAL_IPV4 = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 4],
  ["240.0.0.0", 4],
  // Azure's platform service, which every virtual machine there can reach.
  ["168.63.129.16", 32],
] as const;
/** Within 2000::/3: protocol assignments with Teredo, documentation, and 6to4, which wraps an IPv4 address. */
const SPECIAL_IPV6 = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
] as const;

const special = new BlockList();
for (const [net, prefix] of SPECIAL_IPV4) special.addSubnet(net, prefix, "ipv4");
for (const [net, prefix] of SPECIAL_IPV6) special.addSubnet(net, prefix, "ipv6");
const globalUnicast = new BlockList();
globalUnicast.addSubnet("2000::", 3, "ipv6");

/** False also for what is no address. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !special.check(address, "ipv4");
  if (!isIPv6(address) || address.includes("%")) return false;
  const inner = embeddedIPv4(address);
  if (inner !== undefined) return isPublicAddress(inner);
  return globalUnicast.check(address, "ipv6") && !special.check(address, "ipv6");
}

/** The IPv4 address in a mapped (RFC 4291) or translated (RFC 6052) one: that is where packets go. */
function embeddedIPv4(address: string): string | undefined {
  const plain = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const [, high, low] = /^(?:::ffff:|64:ff9b::)([\da-f]{1,4}):([\da-f]{1,4})$/.exec(plain) ?? [];
  if (high === undefined || low === undefined) return undefined;
  return [high, low].flatMap((group) => [Number.parseInt(group, 16) >> 8, Number.parseInt(group, 16) & 255]).join(".");
}
