import { Purge } from 'customer-authorization-service/testing-host';
import { about } from '../cases.js';
import type { GrantTestContext, Rule, RuleSet } from '../grant-test-context.js';
import { OTHER_SITE } from '../kit-registry.js';

/** The part of its lifetime after which a proof still gets a token. */
const VALID_RATIO = 0.9;
/** The age of a used proof that never expires, when the kit tries it again. */
const OLD_PROOF_SECONDS = 400 * 86_400;
/** West and east of Greenwich: a time that a grant reads without its zone is hours late, or early. */
const ZONES = ['America/New_York', 'Asia/Kolkata'];
const COMPARE_CLIENT = 'store the client with the proof, and compare it with `client.clientId`';
const EXPIRES_AT = 'store `clock.now()` plus the lifetime in milliseconds';
const COMPARE_TIME = 'compare the time of its expiry with `clock.now()` of the injected `Clock`';
const REFUSED = ['invalid_grant', 'expired_token', 'invalid_request', 'unauthorized_client'];

/** To which client, and for how long, a proof belongs. */
export const proofBindingRules: RuleSet = (_declared, { singleUse, boundToClient, lifetime }) => [
  ...(singleUse ? [DECLARED, USED_FOR_EVER] : []),
  ...(boundToClient ? [BOUND_TO_CLIENT] : []),
  ...(typeof lifetime === 'number' ? [expiresAfter(lifetime)] : []),
];

const DECLARED: Rule = {
  title: 'has a test that declares `boundToClient` and `lifetime`, because it declares `singleUse`',
  async check({ kit: { boundToClient, lifetime } }) {
    if (boundToClient === undefined)
      throw new Error('boundToClient: declare whether only the client that a proof was created for gets a token');
    if (lifetime === undefined)
      throw new Error('lifetime: declare after how many seconds a proof expires, or `false` if it never expires');
  },
};

const BOUND_TO_CLIENT: Rule = {
  title: 'gives a token only to the client that the proof was created for, because the test declares `boundToClient`',
  async check(context) {
    const parameters = await context.body();
    await about(`another client of the organization; ${COMPARE_CLIENT}`, () =>
      context.expectError({ error: REFUSED }, { ...parameters, client_id: OTHER_SITE }),
    );
    await about('its own client, after another one tried', () => context.expectToken(parameters));
  },
};

const USED_FOR_EVER: Rule = {
  title: 'gives no second token after the deletion of expired rows',
  async check(context) {
    const { lifetime } = context.kit;
    const parameters = await context.body();
    await context.expectToken(parameters);
    const { application, clock } = context.environment.service;
    await clock.whileStopped(async () => {
      clock.advance({ seconds: typeof lifetime === 'number' ? lifetime * VALID_RATIO : OLD_PROOF_SECONDS });
      await application.get(Purge).run();
      await about('a used proof; keep the row that records its use until the proof expires', () =>
        context.expectError({ error: REFUSED }, parameters),
      );
    });
  },
};

function expiresAfter(lifetime: number): Rule {
  return {
    title: `gives no token after the lifetime of the proof, because the test declares \`lifetime\``,
    async check(context) {
      for (const zone of ZONES) await about(`in the time zone ${zone}`, () => inZone(zone, () => expires(context)));
    },
  };

  function expires(context: GrantTestContext): Promise<void> {
    const { clock } = context.environment.service;
    return clock.whileStopped(async () => {
      const [young, old] = [await context.body(), await context.body()];
      clock.advance({ seconds: lifetime * VALID_RATIO });
      await about(`before its lifetime of ${lifetime} s; ${EXPIRES_AT}`, () => context.expectToken(young));
      clock.advance({ seconds: lifetime * (1 - VALID_RATIO) + 1 });
      await about(`after its lifetime of ${lifetime} s; ${COMPARE_TIME}`, () =>
        context.expectError({ error: REFUSED }, old),
      );
    });
  }
}

/** Does work while the process has another time zone. A thread of its own keeps that of its process. */
async function inZone(zone: string, work: () => Promise<void>): Promise<void> {
  const { TZ } = process.env;
  process.env.TZ = zone;
  try {
    await work();
  } finally {
    if (TZ === undefined) delete process.env.TZ;
    else process.env.TZ = TZ;
  }
}
