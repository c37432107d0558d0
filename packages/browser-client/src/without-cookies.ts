import { oneTabAtATime, repeat, send, TOKEN_LOCK, type TokenResponse, tokenOf, wait } from './request.js';
import type { RequestError } from './request-error.js';

/** Otherwise, another process of a browser may get the lock before it sees a change of the storage, as in Firefox. */
const STORE_DELAY_SECONDS = 0.05;
const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';

/** The customer of a browser in an organization, or in a group of it. */
export interface Place {
  /** The URL of the service. */
  url: string;
  client: { client_id: string; organization_id: string };
  groupId: string | undefined;
  /** What the page stores if the browser does not keep the cookies. */
  withoutCookies: 'refresh_token' | undefined;
}

/** What the page has stored. It has no field if nothing is known yet. */
interface Stored {
  /** The last customer of the cookies. They are kept if a further request gives the same one. */
  entityId?: string | undefined;
  /** The browser does not keep the cookies, and this token of `clientId` leads to the customer. */
  refreshToken?: string | undefined;
  clientId?: string | undefined;
  /** Whether the customer was moved here from another device. */
  isMoved?: boolean;
  /** The browser does not keep the cookies, and a user has signed in: each token needs an assertion of this backend. */
  backendUrl?: string | undefined;
}

/**
 * What is stored; `undefined` if the page does not use the mode, or the browser has no locks or refuses the storage. Then
 * the cookies decide alone. Without locks, a tab could use a token that another one has replaced, which ends the session.
 */
export function storedOf(place: Place): Stored | undefined {
  if (!place.withoutCookies || !navigator.locks) return undefined;
  try {
    const text = localStorage.getItem(itemOf(place));
    if (text === null) localStorage.setItem(itemOf(place), '{}'); // a browser may refuse to write only
    return JSON.parse(text ?? '{}');
  } catch {
    return undefined;
  }
}

/** Whether the storage leads to the customer, and not the cookies. */
export const isWithoutCookies = (stored: Stored | undefined) =>
  stored?.refreshToken !== undefined || stored?.backendUrl !== undefined;

const isUser = (stored: Stored): stored is Stored & { backendUrl: string } => stored.backendUrl !== undefined;

/** The URL of token requests of the group. */
export const tokenUrlOf = ({ url, client, groupId }: Place) =>
  `${url}/v2/customer/${groupId ? `${client.organization_id}/${groupId}/` : ''}token`;

/** The parameters of a cookie grant. */
export const cookieBodyOf = ({ client }: Place) => ({ grant_type: 'cookie', response_type: 'token', ...client });

/** Gets a token, in one turn of this tab. A browser that keeps the cookies keeps its customer. */
export async function requestTokenInTurn(place: Place): Promise<TokenResponse> {
  const stored = storedOf(place);
  if (stored && isWithoutCookies(stored)) {
    const item = itemOf(place);
    const text = localStorage.getItem(item);
    try {
      return await (isUser(stored) ? requestUserToken(place, stored.backendUrl) : refresh(place, stored));
    } catch (error) {
      const hasEnded = (error as RequestError).error === (isUser(stored) ? 'signed_out' : 'invalid_grant');
      if (!hasEnded) throw error;
      // what has ended may be older than what another tab has stored
      if (localStorage.getItem(item) !== text) return requestTokenInTurn(place);
      localStorage.removeItem(item);
    }
  }
  const first = await requestByCookies(place);
  if (!stored || first.entity_id === stored.entityId) return first;
  const second = await requestByCookies(place);
  if (second.entity_id !== first.entity_id) {
    const body = { ...cookieBodyOf(place), grant_type: 'anonymous' };
    return storeToken(place, tokenOf(await send(tokenUrlOf(place), { body })));
  }
  await store(place, { entityId: second.entity_id });
  return second;
}

/**
 * After a response has set the cookies of a customer.
 *
 * @returns whether the browser has kept them; true if the check fails, because the request before it has succeeded
 */
export function checkCookies(place: Place, entityId: string): Promise<boolean> {
  const check = inTurn(async () => {
    const isKept = (await requestByCookies(place)).entity_id === entityId;
    if (isKept) await store(place, { entityId });
    return isKept;
  });
  return check.catch(() => true);
}

/** Signs the user of a backend in. The visitor is left. */
export function signInWithoutCookies(place: Place, backendUrl: string): Promise<void> {
  return inTurn(async () => {
    await requestUserToken(place, backendUrl); // so that a failure leaves the visitor
    await forgetStored(place);
    await store(place, { backendUrl });
  });
}

/** Stores the refresh token of a response, in the turn that has requested it. */
export async function storeToken(
  place: Place,
  { refresh_token: refreshToken, ...response }: TokenResponse & { refresh_token?: string },
  isMoved = false,
): Promise<TokenResponse> {
  await store(place, { refreshToken, clientId: place.client.client_id, isMoved });
  return response;
}

/** Forgets what is stored for all groups of the organization. Devices that got a customer from here stay. */
export async function leaveStored(place: Place): Promise<void> {
  if (storedOf(place)) await inTurn(() => forgetStored(place));
}

/** Ends the stored session with everything that was made in it. */
export function revokeStored(place: Place): Promise<void> {
  return inTurn(async () => {
    const body = { client_id: place.client.client_id, token: storedOf(place)?.refreshToken };
    if (body.token) await send(`${place.url}/v2/customer/revoke`, { body });
    localStorage.removeItem(itemOf(place));
  });
}

async function refresh(place: Place, { refreshToken, isMoved }: Stored): Promise<TokenResponse> {
  const body = { grant_type: 'refresh_token', client_id: place.client.client_id, refresh_token: refreshToken };
  return storeToken(place, tokenOf(await send(`${place.url}/v2/customer/token`, { body })), isMoved);
}

async function requestUserToken({ url, client }: Place, backendUrl: string): Promise<TokenResponse> {
  const { assertion } = await send<{ assertion: string }>(`${backendUrl}/assertion`, { credentials: 'include' });
  const body = { grant_type: JWT_BEARER, ...client, assertion };
  return tokenOf(await send(`${url}/v2/customer/token`, { body }));
}

async function requestByCookies(place: Place): Promise<TokenResponse> {
  return tokenOf(await send(tokenUrlOf(place), { body: cookieBodyOf(place), credentials: 'include' }));
}

async function forgetStored({ url, client }: Place): Promise<void> {
  const prefix = prefixOf(client.organization_id);
  for (const item of Object.keys(localStorage).filter((name) => name.startsWith(prefix))) {
    const { refreshToken, clientId }: Stored = JSON.parse(localStorage.getItem(item) ?? '{}');
    const body = { ...client, client_id: clientId, refresh_token: refreshToken };
    if (refreshToken) await send(`${url}/v2/customer/forget`, { body });
    localStorage.removeItem(item);
  }
}

function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
  return repeat(() => oneTabAtATime(TOKEN_LOCK, work));
}

async function store(place: Place, stored: Stored): Promise<void> {
  localStorage.setItem(itemOf(place), JSON.stringify(stored));
  await wait(STORE_DELAY_SECONDS);
}

function itemOf({ client, groupId = '' }: Place): string {
  return `${prefixOf(client.organization_id)}${client.client_id} ${groupId}`;
}

const prefixOf = (organizationId: string) => `customer-token ${organizationId} `;
