// Lets no more than so many calls run at once; the others wait in line.

export type Limit = <T>(work: () => Promise<T>) => Promise<T>;

/** A failing call frees its place like any other. */
export function atMost(count: number): Limit {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running >= count) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await work();
    } finally {
      // The place goes to the next in line, or becomes free.
      const next = waiting.shift();
      if (next) next();
      else running -= 1;
    }
  };
}
