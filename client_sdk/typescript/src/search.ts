/** Binary search. */

/** Return the first index in a list, ascending by `key`, whose key is above a value. */
export function firstAbove<T>(list: readonly T[], value: number, key: (item: T) => number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (key(list[middle]!) <= value) low = middle + 1;
    else high = middle;
  }
  return low;
}
