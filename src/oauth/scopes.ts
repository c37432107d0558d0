/** The scope with which an agent creates customers and acts for them. */
export const CUSTOMERS_OWN = 'customers:own';
