// @ts-check
/**
 * `npm run bench:verifier`: measures the package token-verifier: the processor time of `verify` and of `jwtVerify` of jose,
 * the memory of a list of 5,000,000 revocations, and the time in which a verifier reads 2,500,000 revocations from a
 * service with a private durable MariaDB. Takes about 4 minutes. `--save` replaces the figures of docs/performance.md.
 */
import { describeRun, isSaving, markdownTable, saveFigures } from './figures.js';
import { withSetup } from './setup.js';
import { measureCalls } from './verifier/calls.js';
import { measureFeed } from './verifier/feed.js';
import { measureList } from './verifier/list.js';

await withSetup('1G', async (setup) => {
  const tables = [await measureCalls(), await measureList(), await measureFeed(setup)];
  for (const table of tables) console.table(table);
  const description = await describeRun('npm run bench:verifier', setup.connection);
  console.log(description);
  if (isSaving()) saveFigures('verifier', [description, ...tables.map(markdownTable)]);
});
