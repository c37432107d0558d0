// @ts-check
/** Holds .env.example against the configuration: every variable of the one is in the other. */
import { readFileSync } from 'node:fs';

/** @param {string} path @param {RegExp} pattern */
const names = (path, pattern) =>
  new Set(Array.from(readFileSync(path, 'utf8').matchAll(pattern), ([, name = '']) => name));

const declared = names('src/platform/configuration/configuration.ts', /^ {2}([A-Z][A-Z_]+)[?:; =]/gm);
const described = names('.env.example', /^# ([A-Z][A-Z_]+)=/gm);
const faults = [
  ...[...declared].filter((name) => !described.has(name)).map((name) => `${name} is missing in .env.example`),
  ...[...described].filter((name) => !declared.has(name)).map((name) => `${name} is no variable of the configuration`),
];
for (const fault of faults) console.error(fault);
if (declared.size === 0 || faults.length > 0) process.exit(1);
