import { describeGrant } from 'conformance-kit';
import { lotto } from '../src/lotto.extension.js';
import { LottoGrant } from '../src/lotto.grant.js';

let drawn = 0;

// tests all service-wide rules on this grant
describeGrant(LottoGrant, {
  ...lotto,
  settings: { client: { winning_ending: '7', prize: 'a bicycle' } },
  valid: () => ({ ticket: `${10_000 + drawn++}7` }),
  singleUse: true,
  boundToClient: false,
  lifetime: false,
  endsWithCaller: false,
  guessable: false,
});
