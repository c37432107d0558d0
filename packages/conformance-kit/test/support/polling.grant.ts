import {
  ApiRoute,
  CustomerService,
  GrantBody,
  type GrantRequest,
  OAuthError,
  PublicController,
  randomSecret,
} from '@customer-authorization/service/grant';
import { Get, type Type } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import type { GrantKit } from '../../src/kit.js';
import { OWN } from '../../src/kit-registry.js';
import { grantOf, type Services } from './grant-of.js';
import { makes } from './mistake.js';

const INTERVAL_SECONDS = 5;

class PollBody extends GrantBody {
  @Matches(/^[\w-]{43}$/)
  poll!: string;
}

class StartResponse {
  @IsString()
  poll!: string;
}

interface Polled {
  lastPoll: number;
  isConfirmed: boolean;
  uses: number;
  organizationId: string;
}

/** A person confirms a proof, which then creates a customer. The proofs are in memory. */
export function pollingGrant(): { grant: Type } & GrantKit & Required<Pick<GrantKit, 'pending'>> {
  const proofs = new Map<string, Polled>();
  const start = (isConfirmed: boolean, organizationId = OWN.organizationId) => {
    const poll = randomSecret('base64url');
    proofs.set(poll, { lastPoll: 0, isConfirmed, uses: 0, organizationId });
    return poll;
  };

  @PublicController('kit_polling')
  class StartController {
    constructor(private readonly customers: CustomerService) {}

    @Get()
    @ApiRoute({ summary: 'Start a poll', response: StartResponse })
    async start(): Promise<StartResponse> {
      if (makes('creates a customer in its start route')) await this.customers.create(OWN.organizationId);
      return { poll: start(false) };
    }
  }

  const poll = async (
    { body, client, organization }: GrantRequest<PollBody>,
    customers: CustomerService,
    { clock }: Services,
  ) => {
    const organizationId = organization?.id ?? client.organizationId ?? '';
    const proof = proofs.get(body.poll);
    if (proof?.organizationId !== organizationId) throw OAuthError.invalidGrant('elsewhere');
    if (proof.uses > (makes('redeems a proof twice') ? 1 : 0)) throw OAuthError.invalidGrant('unknown');
    if (!proof.isConfirmed) {
      if (makes('creates a customer for a poll')) await customers.create(organizationId);
      const isEarly = clock.now() - proof.lastPoll < INTERVAL_SECONDS * 1_000;
      proof.lastPoll = clock.now();
      throw isEarly && !makes('never slows a poll down') ? OAuthError.slowDown() : OAuthError.authorizationPending();
    }
    proof.uses++;
    return customers.create(organizationId);
  };

  return {
    ...grantOf('kit_polling', { body: PollBody, polling: true }, poll, { controllers: [StartController] }),
    valid: ({ organizationId }) => ({ poll: start(true, organizationId) }),
    forged: ({ poll }) => [{ poll: `${poll}`.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')) }],
    pending: async ({ service }) => {
      const { poll } = (await service.send('GET', '/kit_polling')).body;
      const confirm = () =>
        proofs.set(poll, { lastPoll: 0, isConfirmed: true, uses: 0, organizationId: OWN.organizationId });
      return { parameters: { poll }, confirm, intervalSeconds: INTERVAL_SECONDS };
    },
  };
}
