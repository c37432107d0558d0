import { describe, expect, it } from 'vitest';
import { selectStatement } from '../../src/platform/database/statement.js';

describe('the declaration of a batched SELECT', () => {
  it.each([
    ['DISTINCT client_id', 'ticket'],
    ['*', 'ticket'],
    ['ticket.*', 'ticket'],
    ['client_id', 'ticket UNION SELECT client_id FROM draw'],
    ['client_id', 'ticket WHERE client_id = ? FOR UPDATE'],
    ['client_id', 'ticket WHERE client_id = ? FOR SHARE'],
    ['client_id', 'ticket ORDER BY client_id'],
    ['client_id', 'ticket\nWHERE client_id = ?\nORDER BY client_id'],
  ])('is rejected for SELECT %s FROM %s', (column, from) => {
    expect(() => selectStatement({ columns: [column], from, batch: true })).toThrow('a batched SELECT');
  });

  it.each(['ticket', 'ticket WHERE client_id = ?', 'ticket ORDER BY client_id LIMIT 1', 'ticket WHERE reorder_by = 1'])(
    'is accepted for SELECT client_id FROM %s',
    (from) => {
      expect(() => selectStatement({ columns: ['client_id'], from, batch: true })).not.toThrow();
    },
  );
});
