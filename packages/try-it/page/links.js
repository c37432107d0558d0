// @ts-check
/** What the links between the two browsers contain. */

const CHALLENGE = /^[\w-]{43}$/;
const TRANSFER_TOKEN = /^[A-Za-z0-9-]{1,16}:[\w-]{43}$/;

/** @param {URLSearchParams} fragment */
export const challengeIn = (fragment) => valid(fragment.get('challenge'), CHALLENGE);

/** @param {URLSearchParams} fragment */
export const codeIn = (fragment) => valid(fragment.get('code'), TRANSFER_TOKEN);

/** @param {string | null} text @param {RegExp} form */
function valid(text, form) {
  return text !== null && form.test(text) ? text : undefined;
}
