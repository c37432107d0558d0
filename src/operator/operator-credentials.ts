import { Injectable } from '@nestjs/common';
import { Configuration } from '../platform/configuration/configuration.js';
import { equalInConstantTime, sha256 } from '../platform/secret.js';

/** The values of ADMIN_TOKEN. It has several values while the operator rotates it. */
@Injectable()
export class OperatorCredentials {
  private readonly hashes: string[];

  constructor({ ADMIN_TOKEN }: Configuration) {
    this.hashes = ADMIN_TOKEN?.split(',').map(sha256) ?? [];
  }

  /** Whether ADMIN_TOKEN has a value. */
  get areConfigured(): boolean {
    return this.hashes.length > 0;
  }

  /** Whether an `Authorization` header is the operator's. */
  match(authorization: string | undefined): boolean {
    const [, token] = /^Bearer (\S+)$/i.exec(authorization ?? '') ?? [];
    if (token === undefined) return false;
    const hash = sha256(token);
    return this.hashes.some((each) => equalInConstantTime(each, hash));
  }
}
