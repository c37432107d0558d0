import { randomInt } from 'node:crypto';
import { HttpCode, Injectable, Logger, Post } from '@nestjs/common';
import { IsBoolean, IsInt, IsOptional, IsString, Matches } from 'class-validator';
import {
  ApiRoute,
  ClientRequest,
  Clock,
  GrantBody,
  Limits,
  OAuthError,
  PublicController,
} from 'customer-authorization-service/grant';
import type { Random } from '../../../src/fuzz/random.js';
import type { RouteKit } from '../../../src/routes/route-kit.js';
import { grantOf } from '../grant-of.js';

export const MAIL = 'POST /v2/customer/kit_mail';
const LIFETIME_SECONDS = 600;

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
  /** Whether the response comes before the message. */
  sendsLater: boolean;
}

export const FORM: MailForm = {
  addressOf: (person) => `person.${10_000 + person}@example.com`,
  address: /^[\w.@+-]{1,64}$/,
  resends: 3,
  countsInTable: false,
  sendsInValid: false,
  looksUpFirst: false,
  sendsLater: false,
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
    sendsLater: random.chance(0.3),
  };
}

class MailResponse {
  @IsInt()
  expires_in!: number;
}

class TellingResponse extends MailResponse {
  @IsBoolean()
  known!: boolean;
}

class ShowingResponse extends MailResponse {
  @IsOptional()
  @IsString()
  code!: string;
}

type MailLimits = Record<'kit_mail_network' | 'kit_mail_email', `${number}/${number}`>;

@Injectable()
class Mailer {
  async lookUp(_address: string): Promise<void> {}
  async send(_address: string, _text: string): Promise<void> {}
}

/** A route that anyone calls sends a code to an address of the request. The codes are in memory, for all processes. */
export function mailRoute(mistake?: string, form = FORM): RouteKit {
  const { addressOf, address, resends, countsInTable, sendsInValid, looksUpFirst, sendsLater } = form;
  const limits: MailLimits = { kit_mail_network: '1000/600', kit_mail_email: `${resends}/600` };
  const options = mistake === 'names no grant' ? {} : { grant: 'kit_mail' };
  const known = new Set<string>();
  /** The messages to each address, for all processes. */
  const table = new Map<string, number>();
  const codes = new Map<string, { code: string; organizationId: string; expiresAt: number }>();
  const spelled = (email: string) => (mistake === 'counts each spelling of an address' ? email : email.toLowerCase());
  const lifetime = mistake === 'names its lifetime in milliseconds' ? LIFETIME_SECONDS * 1_000 : LIFETIME_SECONDS;
  const more: Record<string, typeof MailResponse> = {
    'says whether an address is known': TellingResponse,
    'responds with the code': ShowingResponse,
  };

  class MailBody {
    @IsString()
    client_id!: string;

    @IsString()
    organization_id!: string;

    @Matches(address)
    email!: string;
  }

  class MailGrantBody extends GrantBody {
    @IsString()
    override organization_id!: string;

    @Matches(address)
    email!: string;

    @Matches(/^\d{6}$/)
    code!: string;
  }

  @PublicController('v2/customer/kit_mail')
  class MailController {
    constructor(
      private readonly limits: Limits<MailLimits>,
      private readonly mailer: Mailer,
      private readonly clock: Clock,
    ) {}

    @Post()
    @ApiRoute({ summary: 'Send a mail', errorStatuses: [429, 503], response: more[mistake ?? ''] ?? MailResponse })
    @HttpCode(200)
    async send(
      @ClientRequest(MailBody, options) { body, organization }: ClientRequest<MailBody>,
    ): Promise<MailResponse> {
      const email = spelled(body.email);
      const code = String(randomInt(100_000, 1_000_000));
      const send = () => this.mailer.send(email, `Your code for acme.example: ${code}.`);
      this.limits.takeForNetwork('kit_mail_network');
      if (looksUpFirst) await this.mailer.lookUp(email);
      if (mistake === 'sends before it takes from the limit') await send();
      const counted = mistake === 'limits only the network' ? { giveBack: () => undefined } : this.count(email);
      codes.set(email, {
        code,
        organizationId: `${organization?.id}`,
        expiresAt: this.clock.now() + LIFETIME_SECONDS * 1_000,
      });
      if (mistake === 'logs the code of a message') new Logger('Mail').log(`sent ${code}`);
      const sending = send().catch((error) => {
        if (mistake !== 'uses up the limit although the mailer fails') counted.giveBack();
        if (mistake !== 'reports success although the mailer fails' && !sendsLater) throw error;
      });
      if (mistake === 'sends a second message that nothing awaits') void send();
      if (!sendsLater) await sending;
      return {
        expires_in: lifetime,
        ...(mistake === 'says whether an address is known' && { known: known.has(email) }),
        ...(mistake === 'responds with the code' && { code }),
      };
    }

    private count(email: string): { giveBack(): void } {
      if (!countsInTable) return this.limits.take('kit_mail_email', email);
      const count = (table.get(email) ?? 0) + 1;
      if (count > resends) throw OAuthError.rateLimited(60, 'mails');
      table.set(email, count);
      return { giveBack: () => void table.set(email, (table.get(email) ?? 1) - 1) };
    }
  }

  const provided = grantOf<MailGrantBody>(
    'kit_mail',
    { body: MailGrantBody },
    async ({ body }, customers, { clock }) => {
      if (mistake === 'fails in the grant for a long address' && body.email.length > 50)
        throw new TypeError('too long');
      const sent = codes.get(spelled(body.email));
      const isRight = sent?.code === body.code && sent.organizationId === body.organization_id;
      if (!isRight || sent.expiresAt <= clock.now()) throw OAuthError.invalidGrant('wrong or expired code');
      codes.delete(spelled(body.email));
      return customers.create(body.organization_id);
    },
    { controllers: [MailController], providers: [Mailer] },
  );
  return {
    modules: provided.modules,
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
