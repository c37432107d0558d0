import { sha256 } from '../../src/platform/secret.js';

/** The parts of a refresh token `REGION:F.R`. */
function partsOf(refreshToken: string): [family: string, secret: string] {
  const [family = '', secret = ''] = (refreshToken.split(':')[1] as string).split('.');
  return [family, secret];
}

/** The hash by which the database finds the family of a refresh token. */
export const familyHashOf = (refreshToken: string): string => sha256(partsOf(refreshToken)[0]);

/** The hash of a refresh token in the database. */
export const tokenHashOf = (refreshToken: string): string => sha256(partsOf(refreshToken)[1]);
