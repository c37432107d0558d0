// @ts-check
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

export const PROJECT = dirname(dirname(import.meta.dirname));

const text = readFileSync(join(PROJECT, 'Dockerfile'), 'utf8');

/** @param {RegExp} pattern */
function match(pattern) {
  const [, found] = pattern.exec(text) ?? [];
  if (found === undefined) throw new Error(`Dockerfile: no line matches ${pattern}`);
  return found;
}

/** What the checks need of the Dockerfile. */
export const dockerfile = {
  baseImage: match(/^FROM (\S+) AS production$/m),
  user: Number(match(/^USER (\d+):\d+$/m)),
  /** @type {string[]} */
  command: JSON.parse(match(/^CMD (\[.+\])$/m)),
  /** @type {string[]} */
  healthCheck: JSON.parse(match(/^ +CMD (\[.+\])$/m)),
  /** @type {Record<string, string>} */
  variables: Object.fromEntries(
    match(/^ENV (.+)$/m)
      .split(' ')
      .map((each) => each.split('=')),
  ),
  /** The instructions of the stage whose folder becomes the service's folder in the image. */
  productionSteps: match(/^FROM \S+ AS production\n([\s\S]*?)\nFROM /m).split('\n'),
};
