// @ts-check
/** The name of a generated grant in each of its forms. */

const NAME = /^[a-z][a-z0-9]*([ -][a-z0-9]+)*$/;
const MAX_NAME_CHARACTERS = 40;
const URI = /^[a-z][a-z0-9+.-]*:[\w.~:/?#@!$&()*+,;=%-]+$/;

/** Grant types that RFC 6749 defines. No other grant may use their names. */
const RFC_6749_NAMES = ['authorization-code', 'refresh-token', 'password', 'client-credentials', 'implicit'];
const NAMES_OF_THE_SERVICE = ['cookie', 'agent-token', 'identity-token', 'jwt-bearer'];
/** A generated class or table would get a name that the service or NestJS uses, such as `GrantBody`. */
const CONFLICTING_NAMES = ['grant', 'public', 'management', 'validated', 'one-time', 'browser'];
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
    throw new Error(`"${text}" would give a class or table a name that the service uses; choose another name`);
  if (uri !== undefined && !URI.test(uri))
    throw new Error(`"${uri}" is no URI for a grant type, such as urn:example:magic-link`);
  const className = name.replaceAll(/(^|-)([a-z0-9])/g, (_all, _hyphen, first) => first.toUpperCase());
  const snakeName = name.replaceAll('-', '_');
  const variable = className.charAt(0).toLowerCase() + className.slice(1);
  return { name, className, variable, snakeName, grantType: uri ?? snakeName };
}

/**
 * Replaces the names in a template or in the name of its file.
 * @param {string} template @param {GrantNames} names @param {Record<string, string>} [more]
 */
export function fillIn(template, names, more = {}) {
  const values = {
    name: names.name,
    Name: names.className,
    variable: names.variable,
    snake_name: names.snakeName,
    constant_name: names.snakeName.toUpperCase(),
    grant_type: names.grantType,
    ...more,
  };
  return Object.entries(values).reduce((text, [key, value]) => text.replaceAll(`$${key}$`, () => value), template);
}
