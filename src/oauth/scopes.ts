/** The scope that an agent needs to create customers and to act for them. */
export const CUSTOMERS_OWN = 'customers:own';
