import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { INACTIVE_REASONS } from '../../src/access-token/inactive-reason.js';

it('docs/observability.md lists every reason why a token is inactive, with its meaning', () => {
  const page = readFileSync(join(import.meta.dirname, '../../docs/observability.md'), 'utf8');
  const [, section = ''] = /^### Inactive tokens\n(.*?)^## /ms.exec(page) ?? [];
  const rows = Array.from(section.matchAll(/^\| `(\w+)` \| (.+) \|$/gm), ([, word, meaning]) => [word, meaning]);
  expect(rows.slice(1)).toEqual(Object.entries(INACTIVE_REASONS));
});
