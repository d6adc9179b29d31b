/* Hand-written limit for rigid TIP3P clusters in vacuum, all pairs.  Needs AVX-512.
   RATTLE with exact 3x3 Newton on the multipliers, vectorized over molecules; optional exact
   Ornstein-Uhlenbeck step (geometric Langevin).  Units nm, ps, amu, kJ/mol.
   build: gcc -O3 -march=native -ffast-math -o limit_water limit_water.c -lm
   use:   limit_water START.txt h_ps steps T gamma seed [rdf_out]     (T=0: NVE)
   START: first line N, then 9 numbers per molecule (O,H,H) and 9 velocities                 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <time.h>
#include <stdint.h>
#define KE 138.935456
#define QO -0.834
#define QH 0.417
#define SIG 0.315075
#define EPS 0.635968
#define ROH 0.09572
#define RHH 0.15139006545247014
#define MO 15.99943
#define MH 1.007947
#define KB 0.00831446261815324
#define NM 1032  /* row stride 129 cache lines: no set conflicts */
static int N;
static double q[9][NM]__attribute__((aligned(64))),v[9][NM]__attribute__((aligned(64))),f[9][NM]__attribute__((aligned(64))),d[9][NM]__attribute__((aligned(64))),l[3][NM]__attribute__((aligned(64))),q0[9][NM]__attribute__((aligned(64)));
static double now(void){struct timespec t;clock_gettime(CLOCK_MONOTONIC,&t);return t.tv_sec+1e-9*t.tv_nsec;}
static uint64_t s4[4];
static inline uint64_t rotl(uint64_t x,int k){return(x<<k)|(x>>(64-k));}
static inline uint64_t nxt(void){uint64_t r=rotl(s4[1]*5,7)*9,t=s4[1]<<17;s4[2]^=s4[0];s4[3]^=s4[1];s4[1]^=s4[2];s4[0]^=s4[3];s4[2]^=t;s4[3]=rotl(s4[3],45);return r;}
static void gauss2(double*a,double*b){double u=((nxt()>>11)+1)*0x1p-53,w=(nxt()>>11)*0x1p-53,r=sqrt(-2*log(u));*a=r*cos(6.283185307179586*w);*b=r*sin(6.283185307179586*w);}
#include <immintrin.h>
/* all pairs, 8 molecules at a time; 1/sqrt by the 14-bit estimate and two Newton steps (full double) */
static inline __m512d rsq(__m512d x){__m512d y=_mm512_rsqrt14_pd(x),h=_mm512_mul_pd(_mm512_set1_pd(0.5),x),t=_mm512_set1_pd(1.5);
  y=_mm512_mul_pd(y,_mm512_fnmadd_pd(_mm512_mul_pd(h,y),y,t));return _mm512_mul_pd(y,_mm512_fnmadd_pd(_mm512_mul_pd(h,y),y,t));}
static inline __attribute__((always_inline)) double force_t(const int want){
  const double s6=pow(SIG,6),c12d=4*EPS*s6*s6,c6d=4*EPS*s6;
  static const double qq[3]={QO,QH,QH};
  for(int k=0;k<9;k++)memset(f[k],0,((N+7)&~7)*8);
  __m512d E=_mm512_setzero_pd();const __m512d six=_mm512_set1_pd(6),c12=_mm512_set1_pd(c12d),c6=_mm512_set1_pd(c6d),tw12=_mm512_set1_pd(2*c12d);
  for(int i=0;i<N-1;i++){
    __m512d x[9],g[9];for(int k=0;k<9;k++){x[k]=_mm512_set1_pd(q[k][i]);g[k]=_mm512_setzero_pd();}
    for(int j=(i+1)&~7;j<N;j+=8){
      unsigned m=0xff;if(j<=i)m&=0xffu<<(i+1-j);if(j+8>N)m&=0xffu>>(j+8-N);
      const __mmask8 M=(__mmask8)m;
      #pragma GCC unroll 3
      for(int b=0;b<3;b++){
        __m512d X=_mm512_load_pd(&q[3*b][j]),Y=_mm512_load_pd(&q[3*b+1][j]),Z=_mm512_load_pd(&q[3*b+2][j]);
        __m512d ax=_mm512_setzero_pd(),ay=ax,az=ax;
        #pragma GCC unroll 3
        for(int a=0;a<3;a++){
          __m512d dx=_mm512_sub_pd(x[3*a],X),dy=_mm512_sub_pd(x[3*a+1],Y),dz=_mm512_sub_pd(x[3*a+2],Z);
          __m512d r2=_mm512_fmadd_pd(dz,dz,_mm512_fmadd_pd(dy,dy,_mm512_mul_pd(dx,dx)));
          __m512d ir=_mm512_maskz_mov_pd(M,rsq(r2)),ir2=_mm512_mul_pd(ir,ir);
          __m512d kq=_mm512_set1_pd(KE*qq[a]*qq[b]),p=_mm512_mul_pd(kq,ir);
          if(want)E=_mm512_add_pd(E,p);
          if(a==0&&b==0){__m512d i6=_mm512_mul_pd(ir2,_mm512_mul_pd(ir2,ir2));
            p=_mm512_fmadd_pd(_mm512_mul_pd(six,i6),_mm512_fmsub_pd(tw12,i6,c6),p);
            if(want)E=_mm512_fmadd_pd(i6,_mm512_fmsub_pd(c12,i6,c6),E);}
          p=_mm512_mul_pd(p,ir2);
          ax=_mm512_fmadd_pd(p,dx,ax);ay=_mm512_fmadd_pd(p,dy,ay);az=_mm512_fmadd_pd(p,dz,az);
          g[3*a]=_mm512_fmadd_pd(p,dx,g[3*a]);g[3*a+1]=_mm512_fmadd_pd(p,dy,g[3*a+1]);g[3*a+2]=_mm512_fmadd_pd(p,dz,g[3*a+2]);
        }
        _mm512_store_pd(&f[3*b][j],_mm512_sub_pd(_mm512_load_pd(&f[3*b][j]),ax));
        _mm512_store_pd(&f[3*b+1][j],_mm512_sub_pd(_mm512_load_pd(&f[3*b+1][j]),ay));
        _mm512_store_pd(&f[3*b+2][j],_mm512_sub_pd(_mm512_load_pd(&f[3*b+2][j]),az));
      }
    }
    for(int k=0;k<9;k++)f[k][i]+=_mm512_reduce_add_pd(g[k]);
  }
  return _mm512_reduce_add_pd(E);
}
static __attribute__((noinline)) double force(int want){return want?force_t(1):force_t(0);}
static double kin(void){double e=0;for(int k=0;k<9;k++){double m=k<3?MO:MH,s=0;for(int i=0;i<N;i++)s+=v[k][i]*v[k][i];e+=0.5*m*s;}return e;}
static const double iO=1/MO,iH=1/MH;
#define DOT(a0,a1,a2,b0,b1,b2) ((a0)*(b0)+(a1)*(b1)+(a2)*(b2))
static void projv(void){
  #pragma GCC ivdep
  for(int i=0;i<N;i++){
    double s[9],w[9];for(int c=0;c<3;c++){s[c]=q[3+c][i]-q[c][i];s[3+c]=q[6+c][i]-q[c][i];s[6+c]=s[3+c]-s[c];w[c]=v[3+c][i]-v[c][i];w[3+c]=v[6+c][i]-v[c][i];w[6+c]=w[3+c]-w[c];}
    double a11=(iO+iH)*DOT(s[0],s[1],s[2],s[0],s[1],s[2]),a22=(iO+iH)*DOT(s[3],s[4],s[5],s[3],s[4],s[5]),a33=2*iH*DOT(s[6],s[7],s[8],s[6],s[7],s[8]);
    double a12=iO*DOT(s[0],s[1],s[2],s[3],s[4],s[5]),a13=-iH*DOT(s[0],s[1],s[2],s[6],s[7],s[8]),a23=iH*DOT(s[3],s[4],s[5],s[6],s[7],s[8]);
    double b1=DOT(s[0],s[1],s[2],w[0],w[1],w[2]),b2=DOT(s[3],s[4],s[5],w[3],w[4],w[5]),b3=DOT(s[6],s[7],s[8],w[6],w[7],w[8]);
    double c11=a22*a33-a23*a23,c12=a13*a23-a12*a33,c13=a12*a23-a13*a22,c22=a11*a33-a13*a13,c23=a12*a13-a11*a23,c33=a11*a22-a12*a12;
    double id=1/(a11*c11+a12*c12+a13*c13);
    double x1=(c11*b1+c12*b2+c13*b3)*id,x2=(c12*b1+c22*b2+c23*b3)*id,x3=(c13*b1+c23*b2+c33*b3)*id;
    for(int c=0;c<3;c++){v[c][i]+=iO*(s[c]*x1+s[3+c]*x2);v[3+c][i]-=iH*(s[c]*x1-s[6+c]*x3);v[6+c][i]-=iH*(s[3+c]*x2+s[6+c]*x3);}
  }
}
static long newt=0;
static double shake(double h){ /* q holds the unconstrained point; d the rods at the step's start; multipliers warm in l */
  double res=0;const double o=ROH*ROH,hh=RHH*RHH;
  for(int c=0;c<9;c++)memcpy(q0[c],q[c],N*8);
  for(int it=0;it<30;it++){ res=0;
    #pragma GCC ivdep
    for(int i=0;i<N;i++){
      double s[9];double l1=l[0][i],l2=l[1][i],l3=l[2][i];
      for(int c=0;c<3;c++){
        double e1=d[c][i]*l1,e2=d[3+c][i]*l2,e3=d[6+c][i]*l3;
        double O=q0[c][i]+iO*(e1+e2),A=q0[3+c][i]-iH*(e1-e3),B=q0[6+c][i]-iH*(e2+e3);
        q[c][i]=O;q[3+c][i]=A;q[6+c][i]=B;s[c]=A-O;s[3+c]=B-O;s[6+c]=B-A;}
      double r1=0.5*(DOT(s[0],s[1],s[2],s[0],s[1],s[2])-o),r2=0.5*(DOT(s[3],s[4],s[5],s[3],s[4],s[5])-o),r3=0.5*(DOT(s[6],s[7],s[8],s[6],s[7],s[8])-hh);
      double m=fmax(fabs(r1),fmax(fabs(r2),fabs(r3)));res=res>m?res:m;
      #define SD(a,b) DOT(s[3*a],s[3*a+1],s[3*a+2],d[3*b][i],d[3*b+1][i],d[3*b+2][i])
      double a11=(iO+iH)*SD(0,0),a12=iO*SD(0,1),a13=-iH*SD(0,2),a21=iO*SD(1,0),a22=(iO+iH)*SD(1,1),a23=iH*SD(1,2),a31=-iH*SD(2,0),a32=iH*SD(2,1),a33=2*iH*SD(2,2);
      double c11=a22*a33-a23*a32,c12=a13*a32-a12*a33,c13=a12*a23-a13*a22,c21=a23*a31-a21*a33,c22=a11*a33-a13*a31,c23=a13*a21-a11*a23,c31=a21*a32-a22*a31,c32=a12*a31-a11*a32,c33=a11*a22-a12*a21;
      double id=1/(a11*c11+a12*c21+a13*c31);
      l[0][i]=l1+(c11*r1+c12*r2+c13*r3)*id;l[1][i]=l2+(c21*r1+c22*r2+c23*r3)*id;l[2][i]=l3+(c31*r1+c32*r2+c33*r3)*id;
    }
    if(res<1e-13)break; newt++;
  }
  double ih=1/h;
  for(int c=0;c<9;c++)for(int i=0;i<N;i++)v[c][i]+=(q[c][i]-q0[c][i])*ih;
  return res;
}
int main(int ac,char**av){
  FILE*F=fopen(av[1],"r");double h=atof(av[2]);long steps=atol(av[3]);double T=atof(av[4]),gam=atof(av[5]);s4[0]=atol(av[6])*0x9E3779B97F4A7C15ull+1;s4[1]=2;s4[2]=3;s4[3]=s4[0]^7;for(int i=0;i<50;i++)nxt();
  if(fscanf(F,"%d",&N)!=1)return 1;
  for(int i=0;i<N;i++)for(int k=0;k<9;k++)if(fscanf(F,"%lf",&q[k][i])!=1)return 1;
  for(int i=0;i<N;i++)for(int k=0;k<9;k++)if(fscanf(F,"%lf",&v[k][i])!=1)return 1;
  fclose(F);
  double gm=0,ex=exp(-gam*h),so=sqrt((1-ex*ex)*KB*T/MO),sh=sqrt((1-ex*ex)*KB*T/MH);
  projv();double E0=force(1)+kin(),emax=0;long every=steps/2000;if(every<1)every=1;
  long nb=0;double st=0,sE=0,stt=0,stE=0,Tsum=0;static long hist[1000];double tdiag=0;int broken=0;
  double t0=now();
  for(long s=0;s<steps;s++){
    for(int k=0;k<9;k++){double c=0.5*h*(k<3?iO:iH);for(int i=0;i<N;i++)v[k][i]+=c*f[k][i];}
    for(int c=0;c<3;c++)for(int i=0;i<N;i++){d[c][i]=q[3+c][i]-q[c][i];d[3+c][i]=q[6+c][i]-q[c][i];d[6+c][i]=q[6+c][i]-q[3+c][i];}
    for(int k=0;k<9;k++)for(int i=0;i<N;i++)q[k][i]+=h*v[k][i];
    double r=shake(h);if(r>gm)gm=r;
    force(0);
    for(int k=0;k<9;k++){double c=0.5*h*(k<3?iO:iH);for(int i=0;i<N;i++)v[k][i]+=c*f[k][i];}
    if(T>0){ for(int k=0;k<9;k++){double sg=k<3?so:sh;for(int i=0;i<N;i+=2){double a,b;gauss2(&a,&b);v[k][i]=ex*v[k][i]+sg*a;if(i+1<N)v[k][i+1]=ex*v[k][i+1]+sg*b;}} }
    projv();
    if((s+1)%every==0||(T>0&&(s+1)%50==0)){double td=now();
      double kk=kin();Tsum+=2*kk/((6.*N-(T>0?0:6))*KB);nb++;
      if((s+1)%every==0){double E=force(1)+kk,t=(s+1)*h;double e=fabs(E-E0);if(e>emax)emax=e;st+=t;sE+=E-E0;stt+=t*t;stE+=t*(E-E0);}
      if(ac>7)for(int i=0;i<N;i++)for(int j=0;j<i;j++){double a=q[0][i]-q[0][j],b=q[1][i]-q[1][j],c=q[2][i]-q[2][j],rr=sqrt(a*a+b*b+c*c);int k=rr/0.002;if(k<1000)hist[k]++;else broken++;}
      tdiag+=now()-td;}
  }
  double t=now()-t0-tdiag;double n=steps/every;double slope=(stE-st*sE/n)/(stt-st*st/n);
  printf("C-limit N=%d h_fs=%g steps=%ld T=%g us/step=%.3f newton/step=%.2f max|g|=%.1e meanT=%.2f max|dE|=%.4g kJ/mol drift=%.4g kJ/mol/ns E0=%.6f beyond_2nm=%d\n",N,h*1e3,steps,T,t/steps*1e6,(double)newt/steps,2*gm,Tsum/nb,emax,slope*1e3,E0,broken);
  if(ac>7){FILE*G=fopen(av[7],"w");double tot=0;for(int k=0;k<1000;k++)tot+=hist[k];for(int k=0;k<1000;k++)fprintf(G,"%.4f %.6g\n",(k+0.5)*0.002,hist[k]/tot/0.002);fclose(G);}
}
