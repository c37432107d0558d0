import createClient from 'openapi-fetch';
import type { paths } from './service.js';

export async function fiveCalls(baseUrl: string, client_id: string, organization_id: string) {
  const service = createClient<paths>({ baseUrl });
  const visit = { grant_type: 'cookie', response_type: 'token', client_id, organization_id } as const;
  const { data, error } = await service.POST('/v2/customer/token', { body: visit });
  if (error) throw new Error(error.error_hint ?? error.error);
  const headers = { Authorization: `Bearer ${data.access_token}` };
  const info = await service.GET('/v2/customer/info', { headers });
  const transfer = await service.POST('/v2/customer/identity_transfer', {
    headers,
    body: { bearer_type: 'customer', client_id },
  });
  const keys = await service.GET('/.well-known/jwks.json');
  const end = await service.DELETE('/v2/customer/token', { headers });
  return [data.entity_id, info.data?.entity_id, transfer.data?.expires_in, keys.data?.keys.length, end.response.status];
}
