import { randomUUID } from 'node:crypto';
import type { TestResponse } from '../http-client.js';
import type { RouteKit } from '../kit.js';
import { FOREIGN, OWN } from '../kit-registry.js';
import { differingTexts, parametersOf, type SentRequest, withHeaders, withParameter } from '../request.js';
import type { RouteRule, RouteSubject } from '../route-subject.js';
import { undeclared } from '../rule.js';
import { containsSecret, isLongText, textsIn } from '../secret-search.js';
import { rowsWith } from '../stored-cells.js';

/** A time that the clock of the database or of the process gives, which do not stand still. */
const TIME = /^\d{4}-\d\d-\d\d[T ]/;
const COMMON_TEXTS = Object.values(OWN);
const LOOK_UP = {
  organization: "look it up together with the caller's `organizationId`",
  caller: "look it up together with the caller's id",
};

/** Who sends a request in the place of its caller: a caller of the other organization, or another one of the same. */
type Other = keyof typeof LOOK_UP;

/** A caller acts for itself, or for its own organization. Without a bearer token the client is the caller. */
export function organizationRules({ callers, actsOn }: RouteKit): RouteRule[] {
  if (actsOn === 'all organizations') return [];
  if (callers.length > 0 && actsOn === undefined) return [DECLARES_ACTS_ON];
  if (typeof actsOn === 'object') return [keepsApart('organization'), actsOnCustomer(actsOn.customer)];
  const others: Other[] = actsOn === 'own caller' ? ['organization', 'caller'] : ['organization'];
  return others.map(keepsApart);
}

const DECLARES_ACTS_ON = undeclared(
  'has a test that declares `actsOn`, because the route takes a bearer token',
  "actsOn: declare 'own caller', 'own organization', { customer: … } with the parameter that names a customer, or 'all organizations'",
);

const ANOTHER = { organization: 'another organization', caller: 'another caller of its organization' };

function keepsApart(other: Other): RouteRule {
  return {
    title: `shows and changes nothing of ${ANOTHER[other]}`,
    // while the clock stands still, no response has a later time than an earlier response
    check: (subject) => subject.service.clock.whileStopped(() => assertKeptApart(subject, other)),
  };
}

async function assertKeptApart(subject: RouteSubject, other: Other): Promise<void> {
  const { service } = subject;
  const earlier = await subject.create();
  if (!namesOrganization(subject, earlier)) return;
  const { text: common } = await subject.send(await sentBy(other, subject, earlier));
  const { sent: used, customers } = await subject.observed();
  const ofOwn = await subject.expectSuccess(used);
  const { sent: unused, customers: ofUnused } = await subject.observed();
  const owners = other === 'organization' ? [OWN.organizationId, OWN.clientId] : [];
  const own = [...owners, ...customers, ...ofUnused];
  // a caller who repeats a request of another one may get its texts, but one who only reads does not create them
  const read = subject.route.method === 'get' ? textsIn(ofOwn.body).filter((text) => !TIME.test(text)) : [];
  const [ofUsed, ofOther] = [parametersOf(used), parametersOf(unused)];
  const sentTexts = differingTexts(ofUsed, ofOther).map((name) => `${ofUsed[name]}`);
  const before = await rowsWith(service, own);
  const hidden = [...own, ...sentTexts, ...read].filter((text) => isLongText(text) && !containsSecret(common, text));
  for (const sent of [unused, used]) {
    const foreign = await sentBy(other, subject, sent);
    const { status, text } = await subject.send(foreign);
    const shown = hidden.find((value) => !JSON.stringify(foreign).includes(value) && containsSecret(text, value));
    if (status < 400 && sent === unused && shown !== undefined)
      throw new Error(`shows ${shown} of ${ANOTHER[other]}; ${LOOK_UP[other]}\n${text}`);
  }
  const after = await rowsWith(service, own);
  const changed = before.find((row) => !after.includes(row)) ?? after.find((row) => !before.includes(row));
  if (changed !== undefined) throw new Error(`changes a row of ${ANOTHER[other]}; ${LOOK_UP[other]}\n${changed}`);
  const { status, text } = await subject.send(unused);
  // a limit may count what the other caller sent to the same text
  if (status >= 300 && status !== 429) throw new Error(`its own caller, after another one tried: refused: ${text}`);
}

function actsOnCustomer(parameter: string): RouteRule {
  return {
    title: 'refuses a customer of another organization as a customer that does not exist',
    async check(subject) {
      const sent = await subject.create();
      if (!subject.environment.isCustomer(`${parametersOf(sent)[parameter]}`))
        throw new Error(`${parameter}: send the id of a customer of \`newCustomer()\` in \`valid\``);
      const ofOther = await subject.send(await sentBy('organization', subject, sent));
      const unknown = withParameter(sent, parameter, randomUUID().replace(/-4/, '-7'));
      const ofUnknown = await subject.send(await sentBy('organization', subject, unknown));
      if (ofOther.status >= 400 && statusOf(ofOther) === statusOf(ofUnknown)) return;
      const solution = 'look up the customer by `CustomerService.find(entityId, organizationId)` of the caller';
      throw new Error(
        `for another organization's customer ${statusOf(ofOther)}\nfor no customer ${statusOf(ofUnknown)}\n${solution}`,
      );
    },
  };
}

/** Whether the caller, the client or a parameter belongs to an organization. */
const namesOrganization = ({ kit }: RouteSubject, sent: SentRequest): boolean =>
  kit.callers.length > 0 || COMMON_TEXTS.some((text) => JSON.stringify(sent).includes(text));

/** The request as another caller sends it. */
async function sentBy(other: Other, subject: RouteSubject, sent: SentRequest): Promise<SentRequest> {
  if (other === 'caller') return withHeaders(sent, await subject.bearer(subject.environment, true));
  const text = JSON.stringify(sent)
    .replaceAll(OWN.organizationId, FOREIGN.organizationId)
    .replaceAll(OWN.clientId, FOREIGN.clientId)
    .replaceAll(OWN.origin, FOREIGN.origin);
  return withHeaders(JSON.parse(text), await subject.bearer(subject.environment.other));
}

const statusOf = ({ status, body }: TestResponse) =>
  status < 400 ? `${status}` : `${status} ${body?.error} ${body?.error_hint}`;
