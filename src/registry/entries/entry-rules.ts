import { applyDecorators } from '@nestjs/common';
import { IS_EMAIL, IsOptional, IsString, Length, Matches, ValidateBy } from 'class-validator';
import { EXAMPLE } from '../../platform/http/api-examples.js';
import { ApiProperty } from '../../platform/http/api-route.js';
import { UUID } from '../../platform/uuid.js';
import { IDENTIFIER } from '../../platform/validation/text-rules.js';
import { rule } from '../../platform/validation/validation.js';
import { canonicalEmail } from '../agent-email.js';
import { isOrigin, isRegistrableRedirectUri } from '../redirect-uri.js';

export const ARE_TEXTS = 'areTexts';

/** One scope token (RFC 6749 §3.3). */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;
/** The length of all scopes of an entry together, separated by spaces, as codes store them. */
const MAX_SCOPE_CHARACTERS = 1_000;

/** The rules that admit `all`, or a list of ids. */
export const IS_ALL_OR_IDS = 'isAllOrIds';

/** An organization lists at most this many client ids, so that they fit into a column of 64 KB. */
const MAX_ADMITTED_CLIENTS = 400;

/** `all`, or a list of client ids. A listed client may be registered later. */
export const IsPublicClients = () =>
  rule(
    IS_ALL_OR_IDS,
    (value) => value === 'all' || (Array.isArray(value) && areClientIds(value)),
    `must be all, or a list of at most ${MAX_ADMITTED_CLIENTS} different client ids`,
  );

/** A resource server lists at most this many organizations. */
const MAX_LISTED_ORGANIZATIONS = 1_000;

/**
 * `all`, or a list of organizations, which may be registered later. The rule depends on the `audiences` of the entry.
 */
export const IsReadableEvents = () => {
  const list = `a list of at most ${MAX_LISTED_ORGANIZATIONS} different organization ids`;
  const validate = (value: unknown, context?: { object: { audiences?: unknown } }) => {
    const audiences = context?.object.audiences;
    const isOfCustomers = Array.isArray(audiences) && audiences.includes('customer-api');
    return isOfCustomers && (value === 'all' || (Array.isArray(value) && areOrganizationIds(value)));
  };
  const defaultMessage = () => `must be all, or ${list}, and needs the audience customer-api`;
  return ValidateBy({ name: IS_ALL_OR_IDS, validator: { validate, defaultMessage } });
};

export const ApiSecret = () => hiddenText('secret', 32, 256, EXAMPLE.clientSecret);

export const ApiPassword = () =>
  hiddenText('password, without which each sign-in as the agent fails', 8, 1_024, EXAMPLE.agentPassword);

/** The OpenAPI document has it, and tools of other languages have no `\P{Cc}`. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it excludes them
const WITHOUT_CONTROL_CHARACTERS = /^[^\x00-\x1f\x7f-\x9f]*$/;

/** A name for people. Control characters are rejected, because SQLite returns a text only up to its first NUL. */
export const IsName = () =>
  applyDecorators(
    IsString(),
    Length(1, 200),
    Matches(WITHOUT_CONTROL_CHARACTERS, { message: 'must not have control characters' }),
  );

export const IsEmailAddress = () =>
  rule(
    IS_EMAIL,
    (value) => typeof value === 'string' && canonicalEmail(value) !== undefined,
    'must be an email of at most 254 characters, with only ASCII before the @',
  );

export const AreScopes = () =>
  areTexts(
    (scopes) => scopes.every((scope) => SCOPE.test(scope)) && scopes.join(' ').length <= MAX_SCOPE_CHARACTERS,
    `must be scope tokens, together at most ${MAX_SCOPE_CHARACTERS} characters`,
  );

export const AreOrigins = () =>
  areTexts((origins) => origins.every(isOrigin), 'each must be an origin: scheme, host and port');

/** `redirect_uris`. The rule depends on the `client_type` of the same entry. */
export const AreRedirectUris = () =>
  areTexts(
    (uris, client) => uris.every((uri) => isRegistrableRedirectUri(uri, client.client_type === 'native')),
    'each must be an absolute http(s) URL without fragment',
  );

/** An entry may omit its secret, which then stays. */
function hiddenText(noun: string, min: number, max: number, example: string) {
  const length = `${min} to ${max} characters`;
  const description = ApiProperty(`The ${noun}: ${length}. No response contains it.`, example);
  return applyDecorators(IsOptional(), IsString(), Length(min, max, { message: `must be ${length}` }), description);
}

function areClientIds(values: unknown[]): boolean {
  return (
    values.length <= MAX_ADMITTED_CLIENTS &&
    new Set(values).size === values.length &&
    values.every((value) => typeof value === 'string' && IDENTIFIER.test(value))
  );
}

function areOrganizationIds(values: unknown[]): boolean {
  return (
    values.length <= MAX_LISTED_ORGANIZATIONS &&
    new Set(values).size === values.length &&
    values.every((value) => typeof value === 'string' && UUID.test(value))
  );
}

function areTexts(isValid: (texts: string[], entry: { client_type?: string }) => boolean, message: string) {
  const validate = (value: unknown, context?: { object: object }) =>
    Array.isArray(value) && value.every((text) => typeof text === 'string') && isValid(value, context?.object ?? {});
  return ValidateBy({ name: ARE_TEXTS, validator: { validate, defaultMessage: () => message } });
}
