/** The parts of a refresh token `REGION:F.R`. */
export interface TokenParts {
  /** F, which is the same in all tokens of a family. */
  family: string;
  /** R, which is secret. */
  secret: string;
}

/** F has 16 bytes and R has 32 bytes, both in base64url. */
const REFRESH_TOKEN = /^[A-Za-z0-9-]{1,16}:(?<family>[\w-]{22})\.(?<secret>[\w-]{43})$/;

/** `undefined` for a text that does not have the form of a refresh token. */
export function partsOfToken(refreshToken: string): TokenParts | undefined {
  return REFRESH_TOKEN.exec(refreshToken)?.groups as TokenParts | undefined;
}
