import { ACME, ACME_ORIGIN, ACME_SITE, testRegistry } from '../test-registry.js';

/** The `grants` of a client with a draw in the registry. */
const DRAW = { lotto: { winning_ending: '7', prize: 'a bicycle' } };
export const NO_DRAW = 'acme-no-draw';
export const ONLY_COOKIES = 'acme-only-cookies';
export const ONLY_LOTTO = 'acme-only-lotto';

/** The test registry with a draw for Acme's site and with clients that have different access to the grant. */
export function registryWithDraw() {
  const registry = testRegistry();
  const client = { name: 'Acme draw', client_type: 'web', organization_id: ACME, redirect_uris: [`${ACME_ORIGIN}/`] };
  const [site, ...others] = registry.clients;
  const clients = [
    { ...site, grants: { ...DRAW } },
    { ...client, client_id: NO_DRAW },
    { ...client, client_id: ONLY_COOKIES, grants: DRAW, grant_types: ['cookie'] },
    { ...client, client_id: ONLY_LOTTO, grants: DRAW, grant_types: ['lotto'] },
  ];
  return { ...registry, clients: [...clients, ...others] };
}

/** Returns a new ticket for each call, because a ticket wins once. */
/** Not one after the other, because the kit changes single digits of a ticket. */
export const winningTicket = () => `${String((ticketCount++ * 7919) % 100_000).padStart(5, '0')}7`;
let ticketCount = 0;

/** The parameters of a request with a winning ticket. */
export function lottoBody(more: object = {}): object {
  return { grant_type: 'lotto', client_id: ACME_SITE, organization_id: ACME, ticket: winningTicket(), ...more };
}
