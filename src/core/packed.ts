// The form in which the codec carries values: JSON, with tags for what JSON cannot say.

/** The key of a tag. */
export const TAG = "$longhaul";
/** JSON in which the codec's tags say what JSON cannot. */
export type Packed = null | boolean | number | string | Packed[] | { [key: string]: Packed };

/** Carries one kind of class instance, such as a chat message, that the codec does not know by itself. */
export interface CodecExtension {
  readonly tag: string;
  matches(value: object): boolean;
  /** Plain data or anything the codec carries. */
  encode(value: object): unknown;
  decode(value: unknown): unknown;
}

type Make<T> = new (...parameters: never[]) => T;

function byPrototype<T>(constructors: readonly Make<T>[]): Map<unknown, string> {
  return new Map(constructors.map((made) => [made.prototype, made.name]));
}

export const TYPED = [
  Int8Array,
  Uint8ClampedArray,
  Int16Array,
  Uint16Array,
  Int32Array,
  Uint32Array,
  Float32Array,
  Float64Array,
  BigInt64Array,
  BigUint64Array,
  DataView,
];
export const TYPED_ARRAYS = byPrototype<object>(TYPED);
export const ERROR_CLASSES = [Error, TypeError, RangeError, SyntaxError, ReferenceError, EvalError, URIError];
export const ERRORS = byPrototype<object>(ERROR_CLASSES);

/** A `__proto__` key stays an ordinary key of its own. */
export function define(record: object, key: string, value: unknown): void {
  Object.defineProperty(record, key, { value, enumerable: true, configurable: true, writable: true });
}
