import { Injectable } from '@nestjs/common';
import { Audit } from '../audit/audit.js';
import { Clock } from '../platform/clock.js';
import { Database } from '../platform/database/database.js';
import { CustomerCreation } from './customer-creation.js';
import type { CandidateCredentials } from './identity-cookies.js';
import { IdleRule } from './idle-rule.js';
import { KnownBrowsers } from './known-browsers.js';
import { NewLink } from './new-link.js';

/** Creates browsers that lead to a customer of another device (protocol §5.6). */
@Injectable()
export class LinkedBrowsers {
  constructor(
    private readonly database: Database,
    private readonly clock: Clock,
    private readonly browsers: KnownBrowsers,
    private readonly audit: Audit,
    private readonly idleRule: IdleRule,
    private readonly creation: CustomerCreation,
  ) {}

  /**
   * A new browser that leads to a transferred customer and to the other customers of the browser that sends the request.
   *
   * @param candidates the identity cookies of the request
   * @param replace whether the customer replaces another one of the browser
   */
  newLink(candidates: CandidateCredentials | undefined, replace: boolean): NewLink {
    const { database, clock, browsers, audit, idleRule, creation } = this;
    return new NewLink({ database, clock, browsers, audit, idleRule, creation }, candidates, replace);
  }
}
