import { defineExtension } from '@customer-authorization/service/grant';
import { PHONE_CODE_LIMITS, PhoneCodeController } from './phone-code.controller.js';
import { PhoneCodeGrant } from './phone-code.grant.js';
import { PhoneCodeGateway } from './phone-code-gateway.js';

/** What this package adds to the service. EXTENSION names this file. */
export default defineExtension({
  grants: [PhoneCodeGrant],
  controllers: [PhoneCodeController],
  providers: [PhoneCodeGateway],
  limits: PHONE_CODE_LIMITS,
  customerKeyFile: 'PHONE_CODE_CUSTOMER_KEY_FILE',
});
