import { IsString, Matches, ValidateNested, validateSync } from 'class-validator';
import { expect, it } from 'vitest';
import { violationsOf } from '../../src/platform/validation-violations.js';

class Inner {
  @Matches(/^\d+$/, { message: 'must be the id of an outer id' })
  id!: string;
}

class Entry {
  @Matches(/^\d+$/, { message: 'must be the request_id of the start' })
  request_id!: string;

  @IsString()
  name!: string;

  @ValidateNested()
  inner!: Inner;
}

it('removes the name of a property only from the beginning of a message', () => {
  const inner = Object.assign(new Inner(), { id: 'x' });
  const entry = Object.assign(new Entry(), { request_id: 'x', name: 7, inner });
  expect(violationsOf(validateSync(entry))).toEqual([
    'request_id: must be the request_id of the start',
    'name: must be a string',
    'inner.id: must be the id of an outer id',
  ]);
});
