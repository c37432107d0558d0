import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { loadConfiguration } from '../../src/platform/configuration/load-configuration.js';
import { dataSourceOptions } from '../../src/platform/database/data-source-options.js';

/** The default of MySQL and MariaDB for `max_prepared_stmt_count`. */
const MAX_SERVER_STATEMENTS = 16_382;
const MANIFESTS = join(import.meta.dirname, '../../deploy/kubernetes/base');

function valueIn(file: string, kind: string, path: string[]): number {
  const documents = parseAllDocuments(readFileSync(join(MANIFESTS, file), 'utf8'));
  return Number(documents.find((document) => document.get('kind') === kind)?.getIn(path));
}

it('the prepared statements of all pods stay below the default limit of the server, also during a roll-out', () => {
  const configuration = loadConfiguration({ DATABASE_URL: 'mysql://u:p@localhost/db', SIGNING_KEYS_FILE: 'keys.json' });
  const { poolSize, extra } = dataSourceOptions(configuration);
  const pods =
    valueIn('availability.yaml', 'HorizontalPodAutoscaler', ['spec', 'maxReplicas']) +
    valueIn('deployment.yaml', 'Deployment', ['spec', 'strategy', 'rollingUpdate', 'maxSurge']);
  expect(pods).toBeGreaterThan(0);
  expect(pods * Number(poolSize) * extra.maxPreparedStatements).toBeLessThan(MAX_SERVER_STATEMENTS);
});
