import { randomUUID } from 'node:crypto';
import { Module } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import { IS_NIGHTLY } from '../../../../test/nightly.js';
import { DEVICE, DevicesOfCustomersController, deviceExtension } from '../../../../test/support/device-extension.js';
import { applicableRules, describeGrant } from '../../src/describe-grant.js';
import { grantMetadataOf } from '../../src/grant-test-context.js';
import { applicableRouteRules, describeRoute } from '../../src/routes/describe-route.js';
import type { RouteKit } from '../../src/routes/route-kit.js';
import { RouteTestContext } from '../../src/routes/route-test-context.js';
import { grantThat, sound } from '../support/broken-grants/ticket.grant.js';
import { APPROVE, approvalRoute } from '../support/broken-routes/approval.route.js';
import { BADGE, badgeGrant, badgeRoute } from '../support/broken-routes/badge.route.js';
import { BROKEN_ROUTES } from '../support/broken-routes/broken-routes.js';
import { LINK, linkRoute } from '../support/broken-routes/link.route.js';
import { FORM, MAIL, mailRoute } from '../support/broken-routes/mail.route.js';
import {
  CLAIM,
  CONTACTS,
  claimRoute,
  contactsRoute,
  VISIT,
  visitRoute,
} from '../support/broken-routes/organization.routes.js';
import { failuresOfRoute } from '../support/failures-of.js';

describe('the conformance kit detects a route that', () => {
  it.each(BROKEN_ROUTES)('%s', async (_description, name, kit, rule, failure, interception) => {
    const failures = await failuresOfRoute(name, kit, { rule: IS_NIGHTLY ? '' : rule, interception });
    expect(Object.entries(failures)).toEqual([[expect.stringContaining(rule), expect.stringMatching(failure)]]);
  });

  it('breaks any rule that only routes have', () => {
    const { grant } = grantThat(sound, { agentScope: 'tickets:any' });
    const ofGrants: unknown[] = applicableRules(grantMetadataOf(grant), { valid: () => ({}) });
    const own = BROKEN_ROUTES.flatMap(([, , kit]) => applicableRouteRules(kit)).filter(
      (rule) => !ofGrants.includes(rule),
    );
    const unbroken = own.filter(({ title }) => !BROKEN_ROUTES.some(([, , , rule]) => title.includes(rule)));
    expect(unbroken).toEqual([]);
  });

  it('responds as the OpenAPI document does not describe', async () => {
    const failures = await failuresOfRoute(APPROVE, approvalRoute('responds with an undocumented status'));
    const failure = 'post /v2/customer/approval/approve 206: a status that the OpenAPI document does not have';
    expect(failures['responds to a valid request with success, as the OpenAPI document describes']).toBe(failure);
  });

  it('repeats a value of the request in a hint', async () => {
    const failures = await failuresOfRoute(APPROVE, approvalRoute('repeats the code in a hint'));
    expect(Object.values(failures).length).toBeGreaterThan(0);
    for (const failure of Object.values(failures))
      expect(failure).toMatch(/^an error response that discloses a secret: \d{6}/);
  });

  it('takes from a limit that its extension does not declare, before any rule', async () => {
    const { limits: _limits, ...kit } = linkRoute();
    const context = await RouteTestContext.open(LINK, kit);
    await expect(context.prepare().finally(() => context.close())).rejects.toThrow(
      /^no rule was checked: POST \/v2\/customer\/kit_link responds with 500: Error: kit_links: no limit has this name; declare it in limits of the Extension$/,
    );
  });

  it('does not exist', async () => {
    await expect(RouteTestContext.open('POST /v2/customer/approval', approvalRoute())).rejects.toThrow(
      'POST /v2/customer/approval: no controller of the public port has this route; name its module in `modules`',
    );
  });
});

describe('the conformance kit accepts a correct route that', () => {
  it('admits clients that may not use the grant of the extension, if the test declares `anyClient`', async () => {
    expect(await failuresOfRoute(MAIL, { ...mailRoute('names no grant'), anyClient: true })).toEqual({});
  });

  it('accepts only addresses, if the test has a UUID in each', async () => {
    const route = mailRoute(undefined, {
      ...FORM,
      addressOf: () => `${randomUUID()}@example.com`,
      address: /^[\w.-]{1,50}@[\w.]{1,20}$/,
    });
    expect(await failuresOfRoute(MAIL, route)).toEqual({});
  });

  it('has a customer as its caller and a path outside of the customer routes', async () => {
    @Module({ controllers: [DevicesOfCustomersController] })
    class DevicesModule {}
    const kit: RouteKit = {
      modules: [DevicesModule],
      callers: ['customer'],
      actsOn: 'own organization',
      valid: () => ({}),
    };
    expect(await failuresOfRoute('GET /devices_of_customers', kit)).toEqual({});
  });

  it('reads a body that may be empty', async () => {
    const kit: RouteKit = { ...deviceExtension, callers: ['customer'], actsOn: 'own organization', valid: () => ({}) };
    expect(await failuresOfRoute(`POST ${DEVICE}/may_be_empty`, kit)).toEqual({});
  });

  it('has its client in the query', async () => {
    const kit: RouteKit = {
      ...deviceExtension,
      callers: [],
      valid: ({ clientId, organizationId }) => ({
        path: `${DEVICE}/settings?client_id=${clientId}&organization_id=${organizationId}`,
      }),
    };
    expect(await failuresOfRoute(`GET ${DEVICE}/settings`, kit)).toEqual({});
  });

  it('responds without content', async () => {
    expect(await failuresOfRoute(APPROVE, approvalRoute('responds without content'))).toEqual({});
  });

  it('admits every origin', async () => {
    const kit: RouteKit = { ...deviceExtension, callers: [], valid: () => ({}) };
    expect(await failuresOfRoute(`GET ${DEVICE}/versions`, kit)).toEqual({});
  });
});

describeRoute(APPROVE, approvalRoute());
describeRoute(LINK, linkRoute());
describeRoute(BADGE, badgeRoute());
describeRoute(VISIT, visitRoute());
describeRoute(MAIL, mailRoute());
describeRoute(CLAIM, claimRoute());
describeRoute(CONTACTS, contactsRoute());

const { grant, ...badgeKit } = badgeGrant();
describeGrant(grant, badgeKit);
