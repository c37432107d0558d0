// @ts-check
/** The page to which the authorization page redirects an agent of the demo. It shows the token or code and its use. */
import { claimsView, decode } from './claims-view.js';
import { DEMO, startPage, TOKEN_PATH, takeFragment, takeQuery } from './demo.js';
import { byId, copyButton, shellQuoted } from './dom.js';
import { isOwnState, prepareSignIn } from './sign-in-link.js';

/** `REGION:JWS`. Other text could add commands to the command below. */
const TOKEN = /^[A-Za-z0-9-]{1,16}:[\w-]+\.[\w-]+\.[\w-]+$/;

/** @param {string} authorization the argument of curl */
const commandWith = (authorization) => `curl -s ${DEMO.authUrl}${TOKEN_PATH} \\
  -H ${authorization} \\
  -d ${shellQuoted(JSON.stringify({ grant_type: 'agent_token', client_id: DEMO.clientId, response_type: 'token', external_id: 'user-4711' }))}`;

/** @param {string} title @param {string} text */
function explain(title, text) {
  byId('title').textContent = title;
  byId('lead').textContent = text;
}

function showResponse() {
  const query = takeQuery();
  const code = query.get('code');
  if (code) return showCode(code, query.get('state'));
  const response = query.has('error') ? query : takeFragment();
  const token = response.get('access_token');
  if (response.has('error'))
    return explain('The sign-in ended without a token', `${response.get('error_description')}.`);
  if (!token)
    return explain('No response of a sign-in', 'This page shows the token of an agent who has just signed in.');
  const claims = claimsIn(token);
  if (!claims) return explain('Not a token', 'The access_token in the URL is not a token of the service.');
  if (!isOwnState(response.get('state')))
    return explain('Not a response to this browser', 'The state differs from that of the request. Sign in again.');
  explain(
    'You are signed in',
    `The token of the agent is valid for ${Number(response.get('expires_in')) / 3600} hours.`,
  );
  byId('token').textContent = token;
  byId('token-actions').replaceChildren(copyButton('Copy the token', () => token));
  byId('command').textContent = commandWith('"Authorization: Bearer $AGENT_TOKEN"');
  byId('command-actions').replaceChildren(
    copyButton('Copy with the token', () => commandWith(shellQuoted(`Authorization: Bearer ${token}`))),
  );
  byId('claims').replaceChildren(claimsView(claims));
  byId('signed-in').hidden = false;
}

/** Shows the code that a server client exchanges (protocol §6.8). @param {string} code @param {string | null} state */
function showCode(code, state) {
  explain('You are signed in', 'The backend exchanges this code for its tokens, once and within 5 minutes.');
  byId('code').textContent = code;
  byId('code-actions').replaceChildren(copyButton('Copy the code', () => code));
  byId('code-state').textContent = state ?? 'none';
  byId('signed-in-code').hidden = false;
}

/** @param {string} token */
function claimsIn(token) {
  try {
    return TOKEN.test(token) ? decode(token) : undefined;
  } catch {
    return undefined;
  }
}

void startPage(() => {
  showResponse();
  prepareSignIn();
});
