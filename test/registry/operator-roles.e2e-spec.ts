import { describe, expect, it } from 'vitest';
import { bearer } from '../support/authorization-headers.js';
import { expectError } from '../support/expect-error.js';
import { manage } from '../support/management-api.js';
import { useService } from '../support/use-service.js';

const ROLES = ['read', 'registry', 'support', 'all'] as const;
type Role = (typeof ROLES)[number];

const tokenOf = (role: Role) => `token-of-the-role-${role}-0123456789abcdef`;
const ADMIN_TOKENS = ROLES.map((role) => `${role}-operator:${role}:${tokenOf(role)}`).join();
const service = useService({ environment: { ADMIN_TOKENS, TRUST_PROXY: '1' } });

/** The roles that may use a route, by protocol §9.1. */
function rolesOf(method: string, path: string): Role[] {
  if (!path.startsWith('/admin/') || path.startsWith('/admin/customers')) return ['support', 'all'];
  if (method === 'GET') return ['read', 'registry', 'all'];
  return method === 'DELETE' && path.startsWith('/admin/organizations/') ? ['all'] : ['registry', 'all'];
}

const withHint = (role: Role) => ({ status: 403, error: 'insufficient_scope', hint: `role: ${role} is required` });

describe('protocol §9.1: the role of an admin token', () => {
  it('admits each operator to the routes of the role, and to no other route', async () => {
    const document = (await manage(service, 'GET', '/openapi.json')).body;
    const operations: [string, string, { security?: object[]; responses: object }][] = [];
    for (const [path, methods] of Object.entries<Record<string, never>>(document.paths))
      for (const [method, operation] of Object.entries(methods)) operations.push([method, path, operation]);
    const ofOperator = operations.filter(([, , { security }]) => security?.some((each) => 'operator' in each));
    expect(ofOperator.length).toBeGreaterThan(30);
    for (const [method, path, { responses }] of ofOperator) {
      expect(responses).toHaveProperty('403');
      const [METHOD, target] = [method.toUpperCase(), path.replace(/\{\w+\}/g, 'unknown')];
      const admitted: Role[] = [];
      for (const role of ROLES)
        if ((await manage(service, METHOD, target, bearer(tokenOf(role)))).status !== 403) admitted.push(role);
      expect([METHOD, path, admitted]).toEqual([METHOD, path, rolesOf(METHOD, path)]);
    }
  });

  it('does not change with the way in which the path is written', async () => {
    for (const path of [
      '/admin/customers/x',
      '//admin/customers/x',
      '/admin/Customers/x',
      '/admin/clients/../customers/x',
    ])
      for (const role of ['read', 'registry'] as const) {
        const { status } = await manage(service, 'DELETE', path, bearer(tokenOf(role)));
        expect([403, 404]).toContain(status);
      }
  });

  it('that does not suffice gets 403 with the role that the route needs, and changes nothing', async () => {
    const reader = bearer(tokenOf('read'));
    const entry = { client_id: 'unwanted', name: 'X', client_type: 'web' };
    const response = await manage(service, 'POST', '/admin/clients', reader, entry);
    expectError(response, withHint('registry'));
    expect(response.headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope"');
    expect((await manage(service, 'GET', '/admin/clients/unwanted', reader)).status).toBe(404);
    expectError(await manage(service, 'POST', '/oauth2/introspect', reader, { token: 'x' }), withHint('support'));
    expectError(await manage(service, 'GET', '/admin/clients', bearer(tokenOf('support'))), withHint('read'));
    const deletion = await manage(service, 'DELETE', '/admin/organizations/x', bearer(tokenOf('registry')));
    expectError(deletion, withHint('all'));
  });

  it('that does not suffice is audited with the name of each operator, also of several in one network', async () => {
    for (const role of ['registry', 'read'] as const) {
      const headers = { ...bearer(tokenOf(role)), 'x-forwarded-for': '192.0.2.31' };
      expect((await manage(service, 'GET', '/oauth2/revocations', headers)).status).toBe(403);
      expect(service.audit.at(-1)).toMatchObject({
        event: 'admin.authentication_failed',
        outcome: 'failure',
        actor: { kind: 'operator', id: `${role}-operator` },
        reason: 'lacks the role support',
        details: { ip: '192.0.2.31', route: '/oauth2/revocations' },
      });
    }
    expect(JSON.stringify(service.audit)).not.toContain(tokenOf('registry'));
  });
});
