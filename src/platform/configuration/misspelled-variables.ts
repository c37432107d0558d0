import { declaredProperties } from '../validation/validation.js';
import { Configuration } from './configuration.js';

/** Variables without effect whose names are at most one letter away from a variable of the service. */
export function misspelledVariables(environment: NodeJS.ProcessEnv): string[] {
  const known = declaredProperties(Configuration).flatMap((name) => [name, `${name}_FILE`]);
  const unknown = Object.keys(environment).filter((name) => environment[name] && !known.includes(name));
  return unknown.flatMap((name) => {
    const similar = known.find((each) => isSimilar(lettersOf(name), lettersOf(each)));
    return similar === undefined ? [] : [`${name}: not a variable of the service; ${similar} is`];
  });
}

const lettersOf = (name: string) => name.toUpperCase().replaceAll(/[^A-Z0-9]/g, '');

/** Whether one letter is added, missing, replaced or exchanged with the next one. */
function isSimilar(one: string, other: string): boolean {
  const [short, long] = one.length <= other.length ? [one, other] : [other, one];
  let start = 0;
  while (start < short.length && short[start] === long[start]) start++;
  if (long.length > short.length) return short.slice(start) === long.slice(start + 1);
  if (short.slice(start + 1) === long.slice(start + 1)) return true;
  const isExchanged = short[start] === long[start + 1] && short[start + 1] === long[start];
  return isExchanged && short.slice(start + 2) === long.slice(start + 2);
}
