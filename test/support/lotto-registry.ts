import { ACME, ACME_ORIGIN, ACME_SITE, testRegistry } from './test-registry.js';

/** What the registry says under `grants` of a client with a draw. */
const DRAW = { lotto: { winning_ending: '7', prize: 'a bicycle' } };
export const NO_DRAW = 'acme-no-draw';
export const ONLY_COOKIES = 'acme-only-cookies';
export const ONLY_LOTTO = 'acme-only-lotto';

/** The registry of all tests, where Acme's site has a draw, and clients that differ in what they may do with it. */
export function registryWithDraw() {
  const registry = testRegistry();
  const client = { name: 'Acme draw', client_type: 'web', organization_id: ACME, redirect_uris: [`${ACME_ORIGIN}/`] };
  const [site, ...others] = registry.clients;
  const clients = [
    { ...site, grants: DRAW },
    { ...client, client_id: NO_DRAW },
    { ...client, client_id: ONLY_COOKIES, grants: DRAW, grant_types: ['cookie'] },
    { ...client, client_id: ONLY_LOTTO, grants: DRAW, grant_types: ['lotto'] },
  ];
  return { ...registry, clients: [...clients, ...others] };
}

/** Another one at each call, since each wins once. */
export const winningTicket = () => `${String(drawn++).padStart(5, '0')}7`;
let drawn = 0;

/** Parameters that win. */
export function lottoBody(more: object = {}): object {
  return { grant_type: 'lotto', client_id: ACME_SITE, organization_id: ACME, ticket: winningTicket(), ...more };
}
