import { describeGrant } from 'customer-authorization-service/testing';
import { lotto } from '../src/lotto.extension.js';
import { LottoGrant } from '../src/lotto.grant.js';

let drawn = 0;

// every rule that binds all grants, on this one
describeGrant(LottoGrant, {
  ...lotto,
  settings: { client: { winning_ending: '7', prize: 'a bicycle' } },
  valid: () => ({ ticket: `${10_000 + drawn++}7` }),
  singleUse: true,
});
