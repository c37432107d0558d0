import { applyDecorators } from '@nestjs/common';
import { Type } from 'class-transformer';
import { IsArray, IsString, Length, Matches, ValidateBy, ValidateNested } from 'class-validator';
import { UUID } from '../../platform/uuid.js';
import { isOrigin, isRegistrableRedirectUri } from '../redirect-uri.js';

/** The name of the rules of lists of texts, whatever else they ask for. */
export const ARE_TEXTS = 'areTexts';

/** A client id as RFC 6749 appendix A.1 has it (VSCHAR), without spaces, quotes and colons. */
const IDENTIFIER = /^[A-Za-z0-9._~-]{1,128}$/;
/** One scope token (RFC 6749 section 3.3). */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;
/** All scopes of an entry, as they are written into codes. */
const LONGEST_SCOPE = 1_000;

/** The name of the rule of secrets of clients and resource servers. */
export const IS_SECRET = 'isSecret';
export const MIN_SECRET_LENGTH = 32;
export const MAX_SECRET_LENGTH = 256;
export const SECRET_RULE = `must be ${MIN_SECRET_LENGTH} to ${MAX_SECRET_LENGTH} characters`;

/** The name of the rule of `public_clients`. */
export const IS_PUBLIC_CLIENTS = 'isPublicClients';

/** The most client ids that an organization lists: together they fit a column of 64 KB. */
const MAX_ADMITTED_CLIENTS = 400;

/** A list of entries of one class. */
export const Each = (entry: () => new () => object) =>
  applyDecorators(IsArray(), ValidateNested({ each: true }), Type(entry));

export const IsUuid = () => Matches(UUID, { message: 'must be a UUID in lower case' });

export const IsIdentifier = () => Matches(IDENTIFIER, { message: 'must be 1 to 128 letters, digits or . _ ~ -' });

/** `all`, or client ids; a listed client may be registered later. */
export const IsPublicClients = () =>
  ValidateBy({
    name: IS_PUBLIC_CLIENTS,
    validator: {
      validate: (value) => value === 'all' || (Array.isArray(value) && areClientIds(value)),
      defaultMessage: () => `must be all, or a list of at most ${MAX_ADMITTED_CLIENTS} different client ids`,
    },
  });

/** The minimum length is not checked here: it depends on what is stored (`shortSecretFaults`). */
export const IsSecret = () =>
  ValidateBy({
    name: IS_SECRET,
    validator: {
      validate: (value) => typeof value === 'string' && value !== '' && value.length <= MAX_SECRET_LENGTH,
      defaultMessage: () => SECRET_RULE,
    },
  });

/** What people are shown. SQLite gives a text back only up to its first NUL. */
export const IsName = () =>
  applyDecorators(IsString(), Length(1, 200), Matches(/^\P{Cc}*$/u, { message: 'must not have control characters' }));

/** Characters. A file may keep a shorter password that release 1 has stored (unchanged-short-passwords.ts). */
export const MIN_PASSWORD_LENGTH = 8;
const MAX_PASSWORD_LENGTH = 1024;

export const IsPassword = () => {
  const message = `must be ${MIN_PASSWORD_LENGTH} to ${MAX_PASSWORD_LENGTH} characters`;
  return applyDecorators(IsString(), Length(MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH, { message }));
};

/** A text that is kept in lower case, in which a few letters are longer. */
export const FitsLowered = (longest: number) =>
  ValidateBy({
    name: 'fitsLowered',
    validator: {
      validate: (text) => typeof text === 'string' && text.toLowerCase().length <= longest,
      defaultMessage: () => `must be at most ${longest} characters`,
    },
  });

export const AreScopes = () =>
  areTexts(
    (scopes) => scopes.every((scope) => SCOPE.test(scope)) && scopes.join(' ').length <= LONGEST_SCOPE,
    `must be scope tokens, together at most ${LONGEST_SCOPE} characters`,
  );

export const AreOrigins = () =>
  areTexts((origins) => origins.every(isOrigin), 'each must be an origin: scheme, host and port');

/** `redirect_uris`, whose rule depends on the type of the client beside it. */
export const AreRedirectUris = () =>
  areTexts(
    (uris, client) => uris.every((uri) => isRegistrableRedirectUri(uri, client.client_type === 'native')),
    'each must be an absolute http(s) URL without fragment',
  );

function areClientIds(values: unknown[]): boolean {
  return (
    values.length <= MAX_ADMITTED_CLIENTS &&
    new Set(values).size === values.length &&
    values.every((value) => typeof value === 'string' && IDENTIFIER.test(value))
  );
}

function areTexts(rule: (texts: string[], entry: { client_type?: string }) => boolean, message: string) {
  const validate = (value: unknown, context?: { object: object }) =>
    Array.isArray(value) && value.every((text) => typeof text === 'string') && rule(value, context?.object ?? {});
  return ValidateBy({ name: ARE_TEXTS, validator: { validate, defaultMessage: () => message } });
}
