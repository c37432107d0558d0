// @ts-check
/** The name of a generated grant in each of its forms. */

const NAME = /^[a-z][a-z0-9]*([ -][a-z0-9]+)*$/;
const MAX_NAME_CHARACTERS = 40;
const URI = /^[a-z][a-z0-9+.-]*:[\w.~:/?#@!$&()*+,;=%-]+$/;

/** Grant types that RFC 6749 defines. No other grant may use their names. */
const RFC_6749_NAMES = ['authorization-code', 'refresh-token', 'password', 'client-credentials', 'implicit'];
const NAMES_OF_THE_SERVICE = ['cookie', 'agent-token', 'identity-token', 'jwt-bearer'];
/** A generated class or table would get a name that the service or NestJS uses, such as `GrantBody`. */
const CONFLICTING_NAMES = [
  ...['grant', 'public', 'management', 'start', 'constructor'],
  ...['client-id', 'grant-type', 'organization-id', 'redirect-uri'],
];
/** `POST /v2/customer/token` and the other routes of the service. */
const ROUTE_NAMES = ['token', 'info', 'identity-transfer', 'forget', 'end-sessions', 'revoke', 'export', 'erase'];

/**
 * @typedef {object} GrantNames
 * @property {string} name magic-link: folders and files
 * @property {string} className MagicLink: the beginning of class names
 * @property {string} variable magicLink: the beginning of variables
 * @property {string} snakeName magic_link: tables and limits
 * @property {string} grantType magic_link, or a URI
 */

/**
 * @param {string} text one or several lower-case words
 * @param {string} [uri] the grant type, if it is a URI
 * @returns {GrantNames}
 * @throws Error whose message is a sentence for the user
 */
export function grantNames(text, uri) {
  if (!NAME.test(text) || text.length > MAX_NAME_CHARACTERS) {
    throw new Error(
      `"${text}" is no name for a grant: use lower-case words, at most ${MAX_NAME_CHARACTERS} characters, as in "magic link"`,
    );
  }
  const name = text.replaceAll(' ', '-');
  if (RFC_6749_NAMES.includes(name)) throw new Error(`"${text}" has a meaning in RFC 6749; choose another name`);
  if (NAMES_OF_THE_SERVICE.includes(name)) throw new Error(`"${text}" is a grant of the service; choose another name`);
  if (ROUTE_NAMES.includes(name)) throw new Error(`"${text}" is a route of the service; choose another name`);
  if (CONFLICTING_NAMES.includes(name))
    throw new Error(`"${text}" would give a class or parameter a name that the service uses; choose another name`);
  if (uri !== undefined && !URI.test(uri))
    throw new Error(`"${uri}" is no URI for a grant type, such as urn:example:magic-link`);
  const className = name.replaceAll(/(^|-)([a-z0-9])/g, (_all, _hyphen, first) => first.toUpperCase());
  const snakeName = name.replaceAll('-', '_');
  const variable = className.charAt(0).toLowerCase() + className.slice(1);
  return { name, className, variable, snakeName, grantType: uri ?? snakeName };
}

/**
 * Replaces the name of an example by another one, in the text of a file or in its path. The name of the grant type,
 * which follows a word such as `grant_type`, may be a URI.
 * @param {string} text @param {string} example boarding-pass @param {GrantNames} names
 * @param {(text: string) => string} change applies to the rest of the text
 */
export function renamed(text, example, names, change) {
  const old = grantNames(example);
  /** @type {[pattern: string, value: string][]} */
  const pairs = [
    [`(?<=grants?(?:_type|Type)?\\W{1,12})${old.snakeName}(?![\\w:])`, names.grantType],
    [old.snakeName.toUpperCase(), names.snakeName.toUpperCase()],
    [old.snakeName, names.snakeName],
    [old.className, names.className],
    [old.variable, names.variable],
    [old.name, names.name],
  ];
  const values = new Map(pairs.map(([, value], index) => [`\0${index}\0`, value]));
  const marked = pairs.reduce(
    (all, [pattern], index) => all.replaceAll(new RegExp(pattern, index === 0 ? 'gi' : 'g'), `\0${index}\0`),
    text,
  );
  return change(marked).replaceAll(/\0\d\0/g, (marker) => /** @type {string} */ (values.get(marker)));
}

/** Changes a text about phones into one about email addresses. @param {string} text */
export const withEmail = (text) =>
  text
    .replaceAll('+4915112345678', 'visitor@example.com')
    .replaceAll(/\ba phone\b/g, 'an email')
    .replaceAll('phone', 'email')
    .replaceAll('Phone', 'Email');
