import { TokenClient } from '@customer-authorization/browser-client';

export const options = {
  url: 'http://localhost:3000',
  clientId: '9cbf3a968289727cb3cdfe83ab1d9836',
  organizationId: '390e44e6-f1e6-4368-86dd-b74514508c2e',
  onCustomerChange: () => location.reload(), // removes the chat of the previous customer from the screen
};

export const tokens = new TokenClient(options);
