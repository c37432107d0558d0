import {
  type ClientSettings,
  cookieBodyOf,
  requestTokenByCookies,
  send,
  type TokenResponse,
  tokenOf,
  tokenUrlOf,
  wait,
  withoutSlash,
  withTokenLock,
} from './request.js';
import { RequestError } from './request-error.js';

export const JWT_BEARER = 'urn:ietf:params:oauth:grant-type:jwt-bearer';
/** Otherwise, another process of a browser may get the lock before it sees a change of the storage, as in Firefox. */
const STORE_DELAY_SECONDS = 0.05;
/** Another page of the browser may set cookies between two requests, so that two responses may differ. */
const MAX_COOKIE_REQUESTS = 3;

/** What the page has stored about its customer. It has no field if nothing is known yet. */
interface Stored {
  /** The last customer of the cookies, which the browser has kept. */
  entityId?: string | undefined;
  /** Whether the browser drops the cookies. One of the next two leads to the customer, if there is one. */
  isDropped?: boolean;
  /** A refresh token of `clientId`. `isMoved`: the customer was moved here from another device. */
  refreshToken?: string;
  clientId?: string;
  isMoved?: boolean;
  /** Whether a user has signed in: each token needs an assertion of the page's backend. */
  isUser?: boolean;
}

const DROPPED: Stored = { isDropped: true };
/** The backends of this page by organization. Not in the storage, where a script could plant another one. */
const backendUrls = new Map<string, string>();

/** Remembers the backend of the users for this page. */
export function setBackend({ client }: ClientSettings, backendUrl: string): void {
  backendUrls.set(client.organization_id, withoutSlash(backendUrl));
}

/** The item of the storage that says that this browser may lead to a user: the user's customer, or `begun`. */
export const noteOf = ({ client }: ClientSettings) => `customer-sign-in ${client.organization_id}`;

/** After the browser has left its user. A page without storage has no note. */
export function removeNote(settings: ClientSettings): void {
  try {
    localStorage.removeItem(noteOf(settings));
  } catch {}
}

/**
 * What is stored; `undefined` if the page does not use the mode, or the browser has no locks or refuses the storage.
 * Then the cookies decide alone. Without locks, a tab could use a token that another one has replaced, which ends the
 * session.
 */
export function storedOf(settings: ClientSettings): Stored | undefined {
  if (!settings.withoutCookies || !globalThis.navigator?.locks) return undefined;
  try {
    const item = itemOf(settings);
    if (localStorage.getItem(item) === null) localStorage.setItem(item, '{}'); // a browser may refuse to write only
    return read(item);
  } catch {
    return undefined;
  }
}

/** Whether the storage leads to a customer. */
export const hasCustomer = (stored: Stored | undefined) => Boolean(stored?.refreshToken || stored?.isUser);

/** Gets a token. The caller has the lock. A browser that keeps the cookies keeps its customer. */
export async function requestTokenWithLock(settings: ClientSettings): Promise<TokenResponse> {
  const stored = storedOf(settings);
  if (!stored) return requestTokenByCookies(settings);
  if (hasCustomer(stored)) {
    const text = localStorage.getItem(itemOf(settings));
    try {
      return await (stored.isUser ? requestUserToken(settings) : refresh(settings, stored));
    } catch (error) {
      const hasEnded = (error as RequestError).error === (stored.isUser ? 'signed_out' : 'invalid_grant');
      if (!hasEnded || (stored.isUser && !backendUrls.has(settings.client.organization_id))) throw error;
      // what has ended may be older than what another tab has stored
      if (localStorage.getItem(itemOf(settings)) !== text) return requestTokenWithLock(settings);
      if (stored.isUser) localStorage.removeItem(noteOf(settings));
      await store(settings, DROPPED);
    }
  } else if (!stored.isDropped) {
    const response = await findCookies(settings, stored.entityId);
    if (response) return response;
  }
  const body = { ...cookieBodyOf(settings), grant_type: 'anonymous' };
  return storeToken(settings, await send(tokenUrlOf(settings), { body }));
}

/**
 * After a response has set the cookies of a customer.
 *
 * @returns whether the browser has kept them
 */
export async function checkCookies(settings: ClientSettings, entityId: string): Promise<boolean> {
  return (await withTokenLock(() => findCookies(settings, entityId))) !== undefined;
}

/** Signs the user of this page's backend in. The visitor is left. Resolves to the customer of the user. */
export function signInWithoutCookies(settings: ClientSettings): Promise<string> {
  return withTokenLock(async () => {
    const { entity_id } = await requestUserToken(settings); // first, so that a failure leaves the visitor
    await forgetItems(settings, `${prefixOf(settings)}${settings.client.client_id} `);
    await store(settings, { ...DROPPED, isUser: true });
    return entity_id;
  });
}

/** Stores the refresh token of a response. The caller has the lock. */
export async function storeToken(
  settings: ClientSettings,
  response: TokenResponse & { refresh_token?: string },
  isMoved = false,
): Promise<TokenResponse> {
  const { refresh_token: refreshToken, ...result } = tokenOf(response);
  if (typeof refreshToken !== 'string') throw new RequestError({ error: 'no_response' });
  await store(settings, { ...DROPPED, refreshToken, clientId: settings.client.client_id, isMoved });
  return result;
}

/**
 * Forgets what pages of this origin have stored for all groups of the organization, also if this client does not use
 * the mode. Devices that got a customer from here stay.
 */
export async function leaveStored(settings: ClientSettings): Promise<void> {
  if (itemsOf(prefixOf(settings)).length > 0) await withTokenLock(() => forgetItems(settings, prefixOf(settings)));
}

/** Ends the stored session with everything that was made in it. */
export function revokeStored(settings: ClientSettings): Promise<void> {
  return withTokenLock(async () => {
    const body = { client_id: settings.client.client_id, token: storedOf(settings)?.refreshToken };
    if (body.token) await send(`${settings.url}/v2/customer/revoke`, { body });
    await store(settings, DROPPED);
  });
}

/** Forgets a refresh token that another one has replaced. */
export async function forgetToken({ url, client }: ClientSettings, { refreshToken, clientId }: Stored): Promise<void> {
  const body = { ...client, client_id: clientId ?? client.client_id, refresh_token: refreshToken };
  if (refreshToken) await send(`${url}/v2/customer/forget`, { body });
}

/** The response of the cookies if the browser keeps them: two responses after one another have one customer. */
async function findCookies(settings: ClientSettings, known: string | undefined): Promise<TokenResponse | undefined> {
  let entityId = known;
  for (let requests = 0; requests < MAX_COOKIE_REQUESTS; requests++) {
    const response = await requestTokenByCookies(settings);
    if (response.entity_id === entityId) {
      await store(settings, { entityId });
      return response;
    }
    entityId = response.entity_id;
  }
  await store(settings, DROPPED);
  return undefined;
}

async function refresh(settings: ClientSettings, { refreshToken, isMoved }: Stored): Promise<TokenResponse> {
  const { url, client } = settings;
  const body = { grant_type: 'refresh_token', client_id: client.client_id, refresh_token: refreshToken };
  return storeToken(settings, await send(`${url}/v2/customer/token`, { body }), isMoved);
}

async function requestUserToken({ url, client }: ClientSettings): Promise<TokenResponse> {
  const backendUrl = backendUrls.get(client.organization_id);
  // `resumeSignIn` of the page sets it
  if (backendUrl === undefined) throw new RequestError({ error: 'signed_out' });
  const { assertion } = await send<{ assertion: string }>(`${backendUrl}/assertion`, { credentials: 'include' });
  const body = { grant_type: JWT_BEARER, ...client, assertion };
  return tokenOf(await send<TokenResponse>(`${url}/v2/customer/token`, { body }));
}

/** The browser drops the cookies as before, so this stays stored. */
async function forgetItems(settings: ClientSettings, prefix: string): Promise<void> {
  for (const item of itemsOf(prefix)) {
    const stored = read(item);
    await forgetToken(settings, stored).catch((error: RequestError) => {
      if (error.isTemporary) throw error; // otherwise one damaged item would block leaving
    });
    if (stored.isDropped) localStorage.setItem(item, JSON.stringify(DROPPED));
    else localStorage.removeItem(item);
  }
  await wait(STORE_DELAY_SECONDS);
}

/** Without storage there are none. */
function itemsOf(prefix: string): string[] {
  try {
    return Object.keys(localStorage).filter((item) => item.startsWith(prefix));
  } catch {
    return [];
  }
}

/** A damaged item counts as one without a field. */
function read(item: string): Stored {
  const text = localStorage.getItem(item) ?? '{}';
  try {
    const stored = JSON.parse(text);
    return typeof stored === 'object' && stored ? stored : {};
  } catch {
    return {};
  }
}

async function store(settings: ClientSettings, stored: Stored): Promise<void> {
  const text = JSON.stringify(stored);
  if (localStorage.getItem(itemOf(settings)) === text) return;
  localStorage.setItem(itemOf(settings), text);
  await wait(STORE_DELAY_SECONDS);
}

function itemOf(settings: ClientSettings): string {
  return `${prefixOf(settings)}${settings.client.client_id} ${settings.groupId ?? ''}`;
}

const prefixOf = ({ client }: ClientSettings) => `customer-token ${client.organization_id} `;
