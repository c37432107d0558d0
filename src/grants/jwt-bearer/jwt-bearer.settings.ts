import {
  ArrayMaxSize,
  ArrayNotEmpty,
  IsArray,
  IsBoolean,
  IsString,
  Length,
  ValidateBy,
  ValidateIf,
  type ValidationArguments,
} from 'class-validator';
import type { JSONWebKeySet } from 'jose';
import { Optional } from '../../public/grant.js';
import { faultOfKeys } from './public-keys.js';

/** What the registry says of an organization's own sign-in system, under the organization's `grants`. */
export class JwtBearerSettings {
  /** The `iss` of its assertions, to the character. */
  @IsString()
  @Length(1, 255)
  issuer: string;

  /** Its public keys, or `jwks_uri`. */
  @ValidateIf((settings: JwtBearerSettings, value) => value !== undefined || settings.jwks_uri === undefined)
  @ArePublicKeys()
  jwks?: JSONWebKeySet;

  /** Where it publishes its keys (RFC 7517 section 5). */
  @Optional()
  @IsKeyAddress()
  jwks_uri?: string;

  /** What its assertions may name as `aud`; left out: AUTH_URL, and the address of the token endpoint. */
  @Optional()
  @IsArray()
  @ArrayNotEmpty()
  @ArrayMaxSize(10)
  @IsString({ each: true })
  @Length(1, 255, { each: true })
  audience?: string[];

  /** Whether a browser's customer may become a user's; left out: it may not. */
  @Optional()
  @IsBoolean()
  link_browsers?: boolean;
}

function ArePublicKeys(): PropertyDecorator {
  const faultOf = (value: unknown, settings: object) =>
    'jwks_uri' in settings ? 'must not stand beside jwks_uri' : faultOfKeys(value);
  return ValidateBy({
    name: 'arePublicKeys',
    validator: {
      validate: (value, context) => faultOf(value, context?.object ?? {}) === undefined,
      defaultMessage: (context?: ValidationArguments) => faultOf(context?.value, context?.object ?? {}) ?? '',
    },
  });
}

/** https, so that nobody on the way gives us keys of his own; or an address of this machine. */
function IsKeyAddress(): PropertyDecorator {
  return ValidateBy({
    name: 'isKeyAddress',
    validator: { validate: isKeyAddress, defaultMessage: () => 'must be an https URL without user and fragment' },
  });
}

function isKeyAddress(value: unknown): boolean {
  if (typeof value !== 'string' || !URL.canParse(value)) return false;
  const { protocol, hostname, username, password, hash } = new URL(value);
  if (username !== '' || password !== '' || hash !== '') return false;
  const isHere = hostname === 'localhost' || hostname === '[::1]' || /^127(\.\d+){3}$/.test(hostname);
  return protocol === 'https:' || (protocol === 'http:' && isHere);
}
