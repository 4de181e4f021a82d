// Words as the stand-in compares them: lower case, without filler, without the commonest endings.

const FILLER = new Set(
  (
    "a about above after again all also an and any are as at be because been before being between both but by can could did do does " +
    "doing down during each either else few for from further get had has have having he her here hers him his how however i if in " +
    "into is it its itself just let like make many may me might more most must my no nor not of off on once one only or other our out " +
    "over own per please same see shall she should so some such than that the their them then there these they this those through to " +
    "too under until up us use used using very via was way we well were what when where whether which while who whom why will with " +
    "within without would you your yours ai sdk page example following guide learn docs documentation"
  ).split(" "),
);

/** The words that carry meaning, in order, repeated as often as they stand. */
export function termsOf(text: string): string[] {
  const words = text
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .match(/[a-z][a-z0-9]+/g);
  return (words ?? []).filter((word) => !FILLER.has(word)).map(stem);
}

function stem(word: string): string {
  if (word.length > 5) return word.replace(/(?:ations?|ings?|ers?|ed|es|s)$/, "");
  return word.length > 3 ? word.replace(/s$/, "") : word;
}

/** How many of `documents` hold each term. */
export function documentFrequency(documents: readonly (readonly string[])[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const document of documents) {
    for (const term of new Set(document)) counts.set(term, (counts.get(term) ?? 0) + 1);
  }
  return counts;
}

/** The share of the smaller text's terms that both have: 1 means that one says nothing beyond the other. */
export function overlap(left: readonly string[], right: readonly string[]): number {
  const [small, large] = [new Set(left), new Set(right)].sort((a, b) => a.size - b.size) as [Set<string>, Set<string>];
  if (small.size === 0) return 0;
  return [...small].filter((term) => large.has(term)).length / small.size;
}
