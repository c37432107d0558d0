import { ArrayNotEmpty, ArrayUnique, IsArray, IsIn, Matches, MaxLength } from 'class-validator';
import { IsHttpUrl, IsIssuer } from '../validation/url-rules.js';

const ALGORITHMS = ['ES256', 'ES384', 'ES512', 'RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'EdDSA'];
export const TEXT = /^\S(.*\S)?$/;
export const TEXT_RULE = { message: 'must be a text without white space around it' };

/** An authorization server whose JWTs the service accepts, and how it validates them. */
export abstract class ForeignIssuer {
  @IsIssuer()
  @MaxLength(255)
  issuer!: string;

  @IsHttpUrl()
  jwks_uri!: string;

  @Matches(TEXT, TEXT_RULE)
  audience!: string;

  @IsArray()
  @ArrayNotEmpty()
  @ArrayUnique()
  @IsIn(ALGORITHMS, { each: true })
  algorithms!: string[];

  /** The `typ` in the header of its tokens: `at+jwt`, or another value that this server writes. */
  @Matches(TEXT, TEXT_RULE)
  typ!: string;
}
