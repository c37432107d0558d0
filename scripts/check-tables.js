// @ts-check
/**
 * Checks that only the folder with the entity of a table has SQL that names the table. Another folder calls it, or
 * imports a fragment of SQL from it. scripts/tables.json has the exceptions: by table, the folders and their reasons.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const SOURCES = join(dirname(import.meta.dirname), 'src');
/** Migrations create the tables of all folders. */
const EXEMPT_FOLDER = 'migrations';

/** @type {Record<string, Record<string, string>>} */
const exceptions = JSON.parse(readFileSync(join(import.meta.dirname, 'tables.json'), 'utf8'));

const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.startsWith(EXEMPT_FOLDER))
  .map((path) => ({
    path,
    folder: /^(grants\/[^/]+|[^/]+)/.exec(path)?.[0] ?? '', // the first folder, or the folder of a grant
    text: readFileSync(join(SOURCES, path), 'utf8').replaceAll(/^ *(\/?\*|\/\/).*/gm, ''), // without comments
  }));

const owners = new Map(
  files.flatMap(({ folder, text }) =>
    Array.from(text.matchAll(/^@Entity\('(\w+)'\)/gm), ([, table = '']) => /** @type {const} */ ([table, folder])),
  ),
);
const TABLES = [...owners.keys()].join('|');
/** The name of a table after its keyword, or at the start of a fragment, as in `'customer own JOIN …'`. */
const NAMED = new RegExp(
  `\\b(?:FROM|JOIN|INTO|UPDATE)\\s+(${TABLES})\\b|['\`](${TABLES})(?= (?:\\w+ )?(?:LEFT )?JOIN)`,
  'g',
);

const found = files.flatMap(({ path, folder, text }) =>
  Array.from(text.matchAll(NAMED), ([, table = '', first = table]) => ({ path, folder, table: table || first })).filter(
    ({ table }) => owners.get(table) !== folder,
  ),
);
const violations = found.filter(({ table, folder }) => !exceptions[table]?.[folder]);
for (const { path, table } of violations)
  console.error(`src/${path}: SQL names the table ${table} of src/${owners.get(table)}`);
const unused = Object.entries(exceptions).flatMap(([table, folders]) =>
  Object.keys(folders).filter((folder) => !found.some((each) => each.table === table && each.folder === folder)),
);
for (const folder of unused) console.error(`scripts/tables.json: an exception of src/${folder} is not needed`);
if (owners.size === 0 || violations.length > 0 || unused.length > 0) process.exit(1);
