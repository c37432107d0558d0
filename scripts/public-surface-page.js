// @ts-check
/**
 * Writes docs/public-surface.md: what each name that other packages can import is for, by the first sentence of its
 * comment. `npm run check:surface` fails if the page is out of date. `npm run update:surface` updates it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { publicSurface } from './public-surface.js';

const PROJECT = dirname(import.meta.dirname);
const PAGE = join(PROJECT, 'docs/public-surface.md');
const HEAD = `# The public surface

Every name that another package can import, and every type that these names mention, with what it is for and its
members. The installed packages have the declarations, with all parameters, units and errors, where an editor shows
them: \`dist/public/grant.d.ts\`, and what it exports from. \`npm run update:surface\` generates this page from them. A
class that is marked "type" is exported as a type only: it cannot be injected or extended.
[Decision 0018](decisions/0018-public-surface.md) says what may change in which release.
`;

const surface = publicSurface();
for (const { title, declarations } of surface)
  for (const { name, purpose } of declarations)
    if (!purpose) fail(`${title}: ${name} has no comment that says what it is for.`);
const page = [HEAD, ...surface.map(section)].join('\n');
if (process.argv.includes('--write')) writeFileSync(PAGE, page);
else if (readFileSync(PAGE, 'utf8') !== page)
  fail('docs/public-surface.md differs from the declarations. If you meant the change, run: npm run update:surface');

/** @param {{ title: string, declarations: import('./public-surface.js').Declaration[] }} section */
function section({ title, declarations }) {
  const rows = declarations
    .toSorted((one, other) => one.name.localeCompare(other.name))
    .map(({ name, purpose, members, typeOnly }) => {
      const listed = members.map((member) => `\`${member}\``).join(', ');
      return `| \`${name}\`${typeOnly ? ' (type)' : ''} | ${cell(purpose)} | ${listed} |`;
    });
  return [`## ${title}`, '', '| name | what it is for | members |', '|---|---|---|', ...rows, ''].join('\n');
}

/** @param {string} text */
function cell(text) {
  return text.replaceAll('|', '\\|');
}

/** @param {string} problem */
function fail(problem) {
  console.error(problem);
  process.exitCode = 1;
}
