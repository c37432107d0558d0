import { uuidv7 } from 'customer-authorization-service/grant';
import type { TestResponse } from '../http-client.js';
import { FOREIGN_ORGANIZATION, FOREIGN_ORIGIN, FOREIGN_SITE, ORIGIN, OWN_ORGANIZATION, SITE } from '../kit-registry.js';
import { containsSecret, isLongText, textsIn } from '../secret-search.js';
import { rowsWith } from '../stored-cells.js';
import { undeclared } from '../test-context.js';
import { allParametersOf, type SentRequest, withText } from './request-texts.js';
import type { RouteKit } from './route-kit.js';
import type { RouteRule, RouteTestContext } from './route-test-context.js';

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
/** A time that the clock of the database or of the process gives, which do not stand still. */
const TIME = /^\d{4}-\d\d-\d\d[T ]/;
const COMMON_TEXTS = [OWN_ORGANIZATION, SITE, ORIGIN];
const LOOK_UP = "look it up together with the caller's `organizationId`";

/** A caller acts for its own organization only (protocol §2.6). Without a bearer token the client is the caller. */
export function routeOrganizationRules({ callers, actsOn }: RouteKit): RouteRule[] {
  if (actsOn === 'all organizations') return [];
  if (callers.length > 0 && actsOn === undefined) return [DECLARES_ACTS_ON];
  return [UNKNOWN_TO_OTHERS, KEPT_APART, ...(typeof actsOn === 'object' ? [actsOnCustomer(actsOn.customer)] : [])];
}

const DECLARES_ACTS_ON = undeclared(
  'has a test that declares `actsOn`, because the route takes a bearer token',
  "actsOn: declare 'own organization', { customer: … } with the parameter that names a customer, or 'all organizations'",
);

const UNKNOWN_TO_OTHERS: RouteRule = {
  title: 'responds to what belongs to another organization as to what does not exist',
  async check(context) {
    const [sent, other] = [await context.valid(), await context.valid()];
    if (!namesOrganization(context, sent)) return;
    for (const [name, value] of ownTexts(sent, other)) {
      if (context.environment.isCustomer(value)) {
        if (typeof context.kit.actsOn === 'object') continue;
        throw new Error(`${name}: names a customer; declare actsOn: { customer: '${name}' } in the test`);
      }
      const own = await context.valid();
      const right = await fromOther(context, own);
      const wrong = await fromOther(context, withText(own, name, wrongText(context, own, name)));
      const [ofOwn, ofUnknown] = [statusOf(await context.send(right)), statusOf(await context.send(wrong))];
      if (ofOwn !== ofUnknown)
        throw new Error(`${name}: of another organization ${ofOwn}\nunknown ${ofUnknown}\n${LOOK_UP}`);
    }
  },
};

const KEPT_APART: RouteRule = {
  title: 'shows and changes nothing of another organization',
  // while the clock stands still, no response has a later time than an earlier response
  check: (context) => context.environment.service.clock.whileStopped(() => assertKeptApart(context)),
};

async function assertKeptApart(context: RouteTestContext): Promise<void> {
  const { service, customersOf } = context.environment;
  const earlier = await context.valid();
  if (!namesOrganization(context, earlier)) return;
  const { text: ofOther } = await context.send(await fromOther(context, earlier));
  const used = await context.valid();
  const ofOwn = await context.expectSuccess(used);
  const unused = await context.valid();
  const own = [OWN_ORGANIZATION, SITE, ...customersOf(OWN_ORGANIZATION)];
  const before = await rowsWith(service, own);
  // a caller who repeats a request of another one may get its texts, but one who only reads does not create them
  const read = context.route.method === 'get' ? textsIn(ofOwn.body).filter((text) => !TIME.test(text)) : [];
  const texts = [...own, ...ownTexts(used, unused).map(([, value]) => value), ...read];
  const hidden = texts.filter((text) => isLongText(text) && !containsSecret(ofOther, text));
  for (const sent of [unused, used]) {
    const foreign = await fromOther(context, sent);
    const withOwnClient = { ...sent, headers: foreign.headers };
    for (const each of context.kit.callers.length > 0 ? [foreign, withOwnClient] : [foreign]) {
      const { status, text } = await context.send(each);
      const request = JSON.stringify(each);
      const shown = hidden.find((value) => !request.includes(value) && containsSecret(text, value));
      if (status < 400 && sent === unused && shown !== undefined)
        throw new Error(`shows ${shown} of another organization; ${LOOK_UP}\n${text}`);
    }
  }
  const after = await rowsWith(service, own);
  const changed = after.find((row) => !before.includes(row)) ?? before.find((row) => !after.includes(row));
  if (changed !== undefined) throw new Error(`changes a row of another organization; ${LOOK_UP}\n${changed}`);
  const { status, text } = await context.send(unused);
  // a limit may count what the other caller sent to the same text
  if (status >= 300 && status !== 429) throw new Error(`its own caller, after another one tried: refused: ${text}`);
}

function actsOnCustomer(parameter: string): RouteRule {
  return {
    title: 'refuses a customer of another organization as a customer that does not exist',
    async check(context) {
      const [sent, other] = [await context.valid(), await context.valid()];
      const customer = new Map(ownTexts(sent, other)).get(parameter) ?? '';
      if (!context.environment.isCustomer(customer))
        throw new Error(`${parameter}: send the id of a customer of \`newCustomer()\` in \`valid\``);
      const unknown = uuidv7(context.environment.service.clock.now());
      const ofOther = await context.send(await fromOther(context, sent));
      const ofUnknown = await context.send(await fromOther(context, withText(sent, parameter, unknown)));
      if (ofOther.status >= 400 && statusOf(ofOther) === statusOf(ofUnknown)) return;
      const solution = 'look up the customer by `CustomerService.find(entityId, organizationId)` of the caller';
      throw new Error(
        `for another organization's customer ${statusOf(ofOther)}\nfor no customer ${statusOf(ofUnknown)}\n${solution}`,
      );
    },
  };
}

/** The texts of a request that another one does not have, by the names of their parameters. */
function ownTexts(sent: SentRequest, other: SentRequest): [name: string, value: string][] {
  const others = allParametersOf(other);
  return Object.entries(allParametersOf(sent)).filter(
    (entry): entry is [string, string] =>
      typeof entry[1] === 'string' && entry[1] !== others[entry[0]] && !COMMON_TEXTS.includes(entry[1]),
  );
}

/** A value that nothing has: of the same form, and accepted by the rules of the body. */
function wrongText(context: RouteTestContext, sent: SentRequest, name: string): string {
  const value = `${allParametersOf(sent)[name]}`;
  if (UUID.test(value)) return value.replace(UUID, uuidv7(context.environment.service.clock.now()));
  return context.guessValues({ parameter: name, limit: 1 }, sent).take(1)[0] as string;
}

/** Whether the caller, the client or a parameter belongs to an organization. */
const namesOrganization = ({ kit }: RouteTestContext, sent: SentRequest): boolean =>
  kit.callers.length > 0 || COMMON_TEXTS.some((text) => JSON.stringify(sent).includes(text));

/** The request that a caller of the other organization sends with its own client. */
async function fromOther(context: RouteTestContext, sent: SentRequest): Promise<SentRequest> {
  const mapped = changed(sent, (text) =>
    text
      .replaceAll(OWN_ORGANIZATION, FOREIGN_ORGANIZATION)
      .replaceAll(SITE, FOREIGN_SITE)
      .replaceAll(ORIGIN, FOREIGN_ORIGIN),
  );
  return { ...mapped, headers: { ...mapped.headers, ...(await context.bearer(context.environment.other)) } };
}

function changed(sent: SentRequest, change: (text: string) => string): SentRequest {
  return JSON.parse(change(JSON.stringify(sent)));
}

const statusOf = ({ status, body }: TestResponse) =>
  status < 400 ? `${status}` : `${status} ${body.error} ${body.error_hint}`;
