// Photos as galleries hold them: a hit is {photo, matches, alike}, and stands for `alike`, its copies and others of a burst.

export const hitOf = ({ copies = [], others = [], ...photo }, matches = []) => ({
  photo,
  matches,
  alike: [...copies, ...others],
});

// Hits with what they stand for, of which only the file is known.
export const eachOf = (hits) =>
  hits.flatMap((hit) => [hit, ...(hit.alike ?? []).map((photo) => ({ photo, matches: [] }))]);

export const photosIn = (hits) => hits.reduce((sum, hit) => sum + 1 + (hit.alike?.length ?? 0), 0);
