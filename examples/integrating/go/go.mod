module example.com/tokenverifier

go 1.25
