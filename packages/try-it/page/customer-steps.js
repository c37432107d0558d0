// @ts-check
/** Steps 1 to 4: a new customer, the same customer again, a group, and the content of a token. */
import { claimsView, decode } from './claims-view.js';
import { cookieGrant, lastCustomer } from './demo.js';
import { byId, code, onClick } from './dom.js';
import { send } from './service.js';
import { helper, runStep } from './session.js';

const PARALLEL_CALL_COUNT = 3;
const GROUP = 'support';

export function connectCustomerSteps() {
  onClick('new', () => runStep('new', getToken));
  onClick('returning', () => runStep('returning', askAgain));
  onClick('parallel', () => runStep('returning', askAtOnce));
  onClick('group', () => runStep('group', getGroupToken));
  onClick('decode', () => runStep('decode', decodeToken));
  void showHelperSource();
}

async function getToken() {
  const known = lastCustomer();
  helper.drop();
  const { entity_id } = /** @type {any} */ (await helper.token());
  return known === entity_id
    ? [
        'The service recognized this browser from an earlier visit. It is still customer ',
        code(entity_id),
        '. Step 9 forgets it.',
      ]
    : ['This browser is now customer ', code(entity_id), '. The response also set the two cookies.'];
}

async function askAgain() {
  const before = lastCustomer();
  helper.drop();
  const { entity_id } = /** @type {any} */ (await helper.token());
  return before === entity_id
    ? ['The same customer, ', code(entity_id), ', with a new token.']
    : ['The browser was not known, so it is a new customer: ', code(entity_id), '. Ask again.'];
}

async function askAtOnce() {
  helper.drop();
  const tokens = await Promise.all(Array.from({ length: PARALLEL_CALL_COUNT }, () => helper.token()));
  const different = new Set(tokens).size;
  return [`${PARALLEL_CALL_COUNT} parts of the page asked at once. The helper sent ${different} request.`];
}

/** @param {(exchange: import('./service.js').Exchange) => Record<string, any>} show */
async function getGroupToken(show) {
  const { entity_id: outside } = /** @type {any} */ (await helper.token());
  const { organization_id, ...body } = cookieGrant();
  const path = `/v2/customer/${organization_id}/${GROUP}/token`;
  const { entity_id } = show(await send({ method: 'POST', path, body }));
  return ['In the group, this browser is customer ', code(entity_id), '. Outside it is ', code(outside), '.'];
}

/** @param {(exchange: import('./service.js').Exchange) => Record<string, any>} show */
async function decodeToken(show) {
  const { access_token } = /** @type {any} */ (await helper.token());
  byId('decode-claims').replaceChildren(claimsView(decode(access_token)));
  show(await send({ method: 'GET', path: '/v2/customer/info', token: access_token }));
  return ['The claims of the token are below. The request asked the service what the token is for.'];
}

/** Shows the code that this page really runs. If the visitor leaves during the request, there is nothing to show. */
async function showHelperSource() {
  const source = await fetch('/try/files/token-helper.js').then(
    (response) => response.text(),
    () => '',
  );
  const pre = byId('helper-source').querySelector('pre');
  if (pre) pre.textContent = source.replace('// @ts-check\n\n', '');
}
