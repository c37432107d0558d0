import { json } from 'node:stream/consumers';
import {
  ApiRoute,
  ClientRequest,
  CustomerService,
  CustomersByKey,
  GrantBody,
  type GrantRequest,
  Limits,
  OAuthError,
  OneTimeCodes,
  PublicController,
} from '@customer-authorization/service/grant';
import { HttpCode, Injectable, Logger, Post, type Type } from '@nestjs/common';
import { IsBoolean, IsInt, IsOptional, IsString, Matches } from 'class-validator';
import type { Random } from '../../../../test/fuzz/random.js';
import type { GrantKit } from '../../src/kit.js';
import type { TestEnvironment } from '../../src/test-environment.js';
import type { TestedGrant, TestedRoute } from './failures-of.js';
import { grantOf } from './grant-of.js';
import { makes } from './mistake.js';

const PHONE = 'POST /v2/customer/kit_phone';
/** A mistake. */
export const LOGS_CODE_OF_URL = 'logs the code, which it sends in a URL';

/** How a correct route sends, and how a correct grant redeems. */
export interface PhoneForm {
  recipientOf: (person: number) => string;
  recipient: RegExp;
  digits: number;
  guesses: number;
  lifetime: number;
  messages: number;
  anyClient: boolean;
}

export const PHONE_FORM: PhoneForm = {
  recipientOf: (person) => `+4930${1_000_000 + person}`,
  recipient: /^\+\d{6,15}$/,
  digits: 6,
  guesses: 5,
  lifetime: 600,
  messages: 3,
  anyClient: false,
};

type PhoneLimits = Record<'kit_phone_network' | 'kit_phone', `${number}/${number}`>;

class PhoneResponse {
  @IsInt()
  expires_in!: number;

  @IsOptional()
  @IsBoolean()
  known?: boolean;

  @IsOptional()
  @IsString()
  code?: string;
}

/** Sends by HTTP. */
@Injectable()
class Sender {
  private readonly url = process.env.KIT_SMS_URL ?? '';

  async send(to: string, text: string): Promise<void> {
    const isInUrl = makes(LOGS_CODE_OF_URL);
    const url = isInUrl ? `${this.url}?text=${encodeURIComponent(text)}` : this.url;
    const body = JSON.stringify({ to, text: isInUrl ? '' : text });
    const signal = makes('has no time-out') ? null : AbortSignal.timeout(1_000);
    const response = await fetch(url, { method: 'POST', body, signal }).catch((error) => {
      if (makes('lets a failed connection be a 500')) throw error;
      throw OAuthError.unavailable(error);
    });
    if (!response.ok && !makes('ignores the status')) throw OAuthError.unavailable(new Error('the sender failed'));
  }
}

/** A route sends a code to a phone, and a grant redeems it. */
export function phoneCode(form = PHONE_FORM): { ofGrant: TestedGrant; ofRoute: TestedRoute } {
  const { recipientOf, recipient, digits, guesses, lifetime, messages, anyClient } = form;
  const limits: PhoneLimits = { kit_phone_network: '1000/600', kit_phone: `${messages}/600` };
  const known = new Set<string>();
  const sent = new Map<string, string>();
  let person = 0;

  class PhoneBody {
    @IsString()
    client_id!: string;

    @IsString()
    organization_id!: string;

    @Matches(recipient)
    phone!: string;
  }

  class PhoneGrantBody extends GrantBody {
    @IsString()
    override organization_id!: string;

    @Matches(recipient)
    phone!: string;

    @Matches(new RegExp(`^\\d{${digits}}$`))
    code!: string;
  }

  const controllerOf = (grant: Type) => {
    const options = makes('names no grant') ? {} : { grant: 'kit_phone' };

    @PublicController('v2/customer/kit_phone')
    class PhoneController {
      constructor(
        private readonly codes: OneTimeCodes,
        private readonly limits: Limits<PhoneLimits>,
        private readonly sender: Sender,
      ) {}

      @Post()
      @HttpCode(200)
      @ApiRoute({ summary: 'Send a code', errors: ['429 temporarily_unavailable'], response: PhoneResponse })
      async send(
        @ClientRequest(PhoneBody, options) { body, client, organization }: ClientRequest<PhoneBody>,
      ): Promise<PhoneResponse> {
        const phone = body.phone.toLowerCase();
        this.limits.takeForNetwork('kit_phone_network');
        const isLimited = !makes('limits only the network');
        const counted = isLimited ? this.limits.take('kit_phone', `${organization?.id} ${phone}`) : undefined;
        const { code, expiresIn } = await this.codes.issue(grant, {
          clientId: client.clientId,
          organizationId: `${organization?.id}`,
          recipient: phone,
          digits,
        });
        const random = makes('creates codes with Math.random') ? `${Math.random()}`.slice(2, 8) : code;
        if (makes('logs the code') || makes(LOGS_CODE_OF_URL)) new Logger('Phone').log(`sent ${code}`);
        await this.sendCode(phone, random, counted);
        return {
          expires_in: expiresIn,
          ...(makes('says whether a phone is known') && { known: known.has(phone) }),
          ...(makes('responds with the code') && { code: `Your code: ${code}` }),
          ...(makes('creates codes with Math.random') && { code: random }),
        };
      }

      private async sendCode(phone: string, code: string, counted?: { giveBack(): void }): Promise<void> {
        const sending = this.sender.send(phone, `Your code: ${code}`);
        if (makes('does not await its message')) return;
        await sending.catch((error) => {
          if (!makes('counts messages that were not sent')) counted?.giveBack();
          throw error;
        });
      }
    }
    return PhoneController;
  };

  const redeem = async (
    request: GrantRequest<PhoneGrantBody>,
    customers: CustomerService,
    { codes, byKey }: { codes: OneTimeCodes; byKey: CustomersByKey },
  ) => {
    const { phone, code } = request.body;
    const ofCode = [...sent].find(([, each]) => each === code)?.[0] ?? phone;
    const recipient = makes('trusts the phone of the request') ? ofCode : phone;
    await codes.redeem(request, code, recipient.toLowerCase());
    if (makes('creates a customer for each proof')) return customers.create(request.body.organization_id);
    return byKey.customerOf(request, 'phone', phone.toLowerCase());
  };

  const { grant, ...extension } = grantOf<PhoneGrantBody>(
    'kit_phone',
    { body: PhoneGrantBody, lifetime, guesses, anyClient },
    redeem,
    (grant) => ({
      controllers: [controllerOf(grant)],
      providers: [Sender],
      limits,
      customerKeyFile: 'KIT_PHONE_KEY_FILE',
    }),
  );

  const common = {
    ...extension,
    upstream: {
      variable: 'KIT_SMS_URL',
      respond: async (request, response) => {
        const { to, text } = (await json(request)) as { to: string; text: string };
        sent.set(to, text.replace(/\D/g, ''));
        response.end('{}');
      },
    } satisfies GrantKit['upstream'],
  };
  const proofFor = async (phone: string, { service, clientId, organizationId }: TestEnvironment) => {
    const body = { client_id: clientId, organization_id: organizationId, phone };
    const { status, text } = await service.post('/v2/customer/kit_phone', body);
    if (status !== 200) throw new Error(text);
    return { phone, code: sent.get(phone.toLowerCase()) ?? sent.get(phone) };
  };
  return {
    ofGrant: {
      grant,
      ...common,
      valid: (environment) => proofFor(recipientOf(person++), environment),
      again: ({ phone }, environment) => proofFor(`${phone}`, environment),
    },
    ofRoute: {
      route: PHONE,
      ...common,
      callers: [],
      valid: ({ clientId: client_id, organizationId: organization_id }) => {
        const phone = recipientOf(person++);
        known.add(phone);
        return { body: { client_id, organization_id, phone } };
      },
    },
  };
}

export function randomPhoneForm(random: Random): PhoneForm {
  const [recipientOf, recipient] = random.pick<[(person: number) => string, RegExp]>([
    [PHONE_FORM.recipientOf, PHONE_FORM.recipient],
    [(person) => `person.${10_000 + person}@mail.example.com`, /^[\w.+-]{1,40}@[\w.]{1,20}$/],
    [(person) => `badge-${person}`, /^badge-\d{1,9}$/],
    [(person) => `${crypto.randomUUID()}-${person}`, /^[\w-]{1,64}$/],
  ]);
  return {
    ...{ recipientOf, recipient, digits: 4 + random.below(5), guesses: 2 + random.below(8) },
    ...{ lifetime: random.pick([60, 600, 3_600]), messages: 2 + random.below(9) },
    anyClient: random.chance(0.3),
  };
}
