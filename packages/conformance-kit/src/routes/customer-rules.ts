import { uuidv7 } from 'customer-authorization-service/grant';
import type { TestResponse } from '../http-client.js';
import { FOREIGN_ORGANIZATION, FOREIGN_ORIGIN, FOREIGN_SITE, ORIGIN, OWN_ORGANIZATION, SITE } from '../kit-registry.js';
import { foreignBearer } from './caller-rules.js';
import type { RouteKit } from './route-kit.js';
import type { RouteRule } from './route-rule.js';
import type { SentRequest } from './route-test-context.js';

const UUIDS = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** A caller acts for customers of its own organization only (protocol §2.6). */
export function routeCustomerRules({ callers, anyOrganization }: RouteKit): RouteRule[] {
  return callers.length === 0 || anyOrganization ? [] : [FOREIGN_CUSTOMER];
}

const FOREIGN_CUSTOMER: RouteRule = {
  title: 'responds to a customer of another organization as to a customer that does not exist',
  async check(context) {
    const sent = changed(await context.valid(), asForeign);
    const uuids = JSON.stringify([sent.path, sent.body]).match(UUIDS) ?? [];
    const customer = uuids.find(context.environment.isCustomer);
    if (customer === undefined) return;
    const authorization = await foreignBearer(context, FOREIGN_SITE);
    const foreign = { ...sent, headers: { ...sent.headers, authorization } };
    const ofForeign = contentOf(await context.send(foreign));
    const unknownId = uuidv7(context.environment.service.clock.now());
    const unknown = changed(foreign, (text) => text.replaceAll(customer, unknownId));
    const ofUnknown = contentOf(await context.send(unknown));
    if (ofForeign === ofUnknown) return;
    const solution = 'look up the customer by `Identities.find(entityId, organizationId)` of the caller';
    throw new Error(`for another organization's customer ${ofForeign}\nfor no customer ${ofUnknown}\n${solution}`);
  },
};

/** The request that a caller of the other organization sends with its own client. */
function asForeign(text: string): string {
  return text
    .replaceAll(OWN_ORGANIZATION, FOREIGN_ORGANIZATION)
    .replaceAll(SITE, FOREIGN_SITE)
    .replaceAll(ORIGIN, FOREIGN_ORIGIN);
}

function changed(sent: SentRequest, change: (text: string) => string): SentRequest {
  return JSON.parse(change(JSON.stringify(sent)));
}

/** The response without the id of the request. */
function contentOf({ status, text, body }: TestResponse): string {
  return `${status} ${status < 400 ? text : `${body.error} ${body.error_hint}`}`;
}
