// @ts-check
/** Checks that .env.example and docs/configuration.md describe exactly the variables of the configuration. */
import { readFileSync } from 'node:fs';

/** @param {string} path @param {RegExp} pattern */
const namesIn = (path, pattern) =>
  new Set(Array.from(readFileSync(path, 'utf8').matchAll(pattern), ([, name = '']) => name));

const declared = namesIn('src/platform/configuration/configuration.ts', /^ {2}([A-Z][A-Z_]+)[!?:; =]/gm);
const descriptions = {
  '.env.example': namesIn('.env.example', /^# ([A-Z][A-Z_]+)=/gm),
  'docs/configuration.md': namesIn('docs/configuration.md', /^\| `([A-Z][A-Z_]+)` \|/gm),
};
const violations = Object.entries(descriptions).flatMap(([path, described]) => [
  ...[...declared].filter((name) => !described.has(name)).map((name) => `${name} is missing in ${path}`),
  ...[...described].filter((name) => !declared.has(name)).map((name) => `${path}: ${name} is not a variable`),
]);
for (const violation of violations) console.error(violation);
if (declared.size === 0 || violations.length > 0) process.exit(1);
