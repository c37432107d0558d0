import { EXAMPLE } from '../platform/http/api-examples.js';

/** The parameter of the operator's routes about a customer, for the OpenAPI document. */
export const CUSTOMER_PATH = { entity_id: { description: 'The id of the customer.', example: EXAMPLE.entityId } };
