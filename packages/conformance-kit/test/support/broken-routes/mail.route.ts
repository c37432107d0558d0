import { HttpCode, Injectable, Post } from '@nestjs/common';
import { IsBoolean, IsString, Matches } from 'class-validator';
import {
  ApiRoute,
  ClientRequest,
  GrantBody,
  Limits,
  OAuthError,
  PublicController,
} from 'customer-authorization-service/grant';
import type { Random } from '../../../src/fuzz/random.js';
import type { RouteKit } from '../../../src/routes/route-kit.js';
import { grantOf } from '../grant-of.js';

export const MAIL = 'POST /v2/customer/kit_mail';

/** How a correct route sends. */
export interface MailForm {
  /** Returns the address of a person. */
  addressOf: (person: number) => string;
  /** The rule of the body for an address. */
  address: RegExp;
  resends: number;
  /** Whether a table counts the messages, also those of `valid` and of other processes. */
  countsInTable: boolean;
  /** Whether `valid` sends the first message. */
  sendsInValid: boolean;
  /** Whether the route asks a provider for the person before it takes from the limit. */
  looksUpFirst: boolean;
}

export const FORM: MailForm = {
  addressOf: (person) => `person.${10_000 + person}@example.com`,
  address: /^[\w.@+-]{1,64}$/,
  resends: 3,
  countsInTable: false,
  sendsInValid: false,
  looksUpFirst: false,
};

export function randomMailForm(random: Random): MailForm {
  return {
    ...FORM,
    addressOf: random.pick([
      FORM.addressOf,
      (person) => `${'xyz'.repeat(person % 9)}${person}+chat@mail.example.com`,
      (person) => `+4930${1_000_000 + person}`,
      (person) => `badge-${person}`,
    ]),
    resends: 2 + random.below(5),
    countsInTable: random.chance(0.5),
    sendsInValid: random.chance(0.5),
    looksUpFirst: random.chance(0.5),
  };
}

const refuse = () => Promise.reject(OAuthError.invalidGrant('no mail'));

class MailResponse {
  @IsBoolean()
  known!: boolean;
}

type MailLimits = Record<'kit_mail_network' | 'kit_mail_email', `${number}/${number}`>;

@Injectable()
class Mailer {
  async lookUp(_address: string): Promise<void> {}
  async send(_address: string): Promise<void> {}
}

/** A route that anyone calls sends a mail to an address of the request. */
export function mailRoute(mistake?: string, form = FORM): RouteKit {
  const { addressOf, address, resends, countsInTable, sendsInValid, looksUpFirst } = form;
  const limits: MailLimits = { kit_mail_network: '1000/600', kit_mail_email: `${resends}/600` };
  const tells = mistake === 'says whether an address is known';
  const options = mistake === 'names no grant' ? {} : { grant: 'kit_mail' };
  const known = new Set<string>();
  /** The messages to each address, for all processes. */
  const table = new Map<string, number>();

  class MailBody {
    @IsString()
    client_id!: string;

    @IsString()
    organization_id!: string;

    @Matches(mistake === 'accepts an address of any length' ? /^[\w.]+@example\.com$/ : address)
    email!: string;
  }

  @PublicController('v2/customer/kit_mail')
  class MailController {
    constructor(
      private readonly limits: Limits<MailLimits>,
      private readonly mailer: Mailer,
    ) {}

    @Post()
    @ApiRoute({ summary: 'Send a mail', errorStatuses: [429], ...(tells && { response: MailResponse }) })
    @HttpCode(200)
    async send(@ClientRequest(MailBody, options) { body: { email } }: ClientRequest<MailBody>): Promise<object> {
      this.limits.takeForNetwork('kit_mail_network');
      if (looksUpFirst) await this.mailer.lookUp(email);
      if (mistake === 'sends before it takes from the limit') await this.mailer.send(email);
      if (mistake !== 'limits only the network') this.count(email);
      await this.mailer.send(email);
      return tells ? { known: known.has(email) } : {};
    }

    private count(email: string): void {
      if (!countsInTable) return void this.limits.take('kit_mail_email', email);
      const count = (table.get(email) ?? 0) + 1;
      if (count > resends) throw OAuthError.rateLimited(60, 'mails');
      table.set(email, count);
    }
  }

  const routes = { controllers: [MailController], providers: [Mailer] };
  return {
    modules: grantOf('kit_mail', { body: GrantBody }, refuse, routes).modules,
    limits,
    otherLimits: mistake === 'limits only the network' || countsInTable ? ['kit_mail_email'] : [],
    replace: [[Mailer, new Mailer()]],
    callers: [],
    guessable: false,
    resends,
    valid: async ({ clientId: client_id, organizationId: organization_id, service }) => {
      const email = addressOf(known.size);
      known.add(email);
      const body = { client_id, organization_id, email };
      if (sendsInValid) await service.post(MAIL.slice(5), body);
      return { body };
    },
  };
}
