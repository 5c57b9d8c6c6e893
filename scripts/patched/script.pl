use strict; use warnings;
my (%seen, @all);
for my $n (1 .. 20000) { push @all, ($n * 7919) % 1009; $seen{$all[-1] % 97} .= chr(97 + $n % 26) }
my @sorted = sort { $b <=> $a || $a cmp $b } @all;
my $text = join ",", map { "$_=" . substr($seen{$_}, 0, 9) } sort { $a <=> $b } keys %seen;
(my $changed = $text) =~ s/(\d+)=(\w{3})/$2:$1/g;
print "$changed\n", join(" ", @sorted[0 .. 20]), "\n";
eval { die { code => 42 } }; print "caught $@->{code}\n";
printf "%s %.6f %x\n", scalar reverse("watched"), atan2(1, 2) * 4, unpack("%32C*", $text);
