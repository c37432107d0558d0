import { HttpCode, Module, Post } from '@nestjs/common';
import { IsString, Matches } from 'class-validator';
import { ApiRoute, ClientRequest, Limits, PublicController } from 'customer-authorization-service/grant';
import type { RouteKit } from '../../../src/routes/route-kit.js';

export const MAIL = 'POST /v2/customer/kit_mail';

/** A mistake of the author of a route. The route without a mistake satisfies every rule. */
export type MailMistake = 'limits only the network';

class MailBody {
  @IsString()
  client_id!: string;

  @IsString()
  organization_id!: string;

  @Matches(/^[\w.]{1,64}@example\.com$/)
  email!: string;
}

const LIMITS = { kit_mail_network: '1000/600', kit_mail_email: '3/600' } as const;

/** A route that anyone calls sends a mail to an address of the request. */
export function mailRoute(mistake?: MailMistake): RouteKit {
  let count = 0;

  @PublicController('v2/customer/kit_mail')
  class MailController {
    constructor(private readonly limits: Limits<typeof LIMITS>) {}

    @Post()
    @ApiRoute({ summary: 'Send a mail', errorStatuses: [429] })
    @HttpCode(200)
    send(@ClientRequest(MailBody) { body }: ClientRequest<MailBody>): object {
      this.limits.takeForNetwork('kit_mail_network');
      if (mistake !== 'limits only the network') this.limits.take('kit_mail_email', body.email);
      return {};
    }
  }

  @Module({ controllers: [MailController] })
  class MailModule {}

  return {
    modules: [MailModule],
    limits: LIMITS,
    otherLimits: mistake ? ['kit_mail_email'] : [],
    callers: [],
    guessable: false,
    resends: 3,
    valid: ({ clientId: client_id, organizationId: organization_id }) => ({
      body: { client_id, organization_id, email: `person.${10_000 + count++}@example.com` },
    }),
  };
}
